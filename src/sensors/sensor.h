// SPDX-License-Identifier: Apache-2.0
//
// Sensor: something that can be read for energy, power and what explains them. One owner, one thread; after it is open,
// read() neither allocates nor locks nor logs: what goes wrong is a code in the reading.
//
// A sensor knows when it is worth reading (pace.h has what most of them use). A caller that needs the edge of a window
// asks for closer attention: then the moments at which counters step matter more than the cost of a read.
//
// A backend is one kind of sensor (perf_event, powercap, ...). Its probe looks at the machine and gives back both
// the verdict that `doctor` prints and, where it can be used, the open sensors: one function, so that the two cannot
// disagree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system_root.h"
#include "model/channel.h"
#include "model/sample.h"
#include "model/sensor_status.h"
#include "sensors/own_processes.h"

namespace joulemap::sensors {

enum class Attention : std::uint8_t {
  relaxed,  // between edges: what is worth its cost
  close,    // an edge is near: find out when the counters step
  now,      // read every channel at once, whatever it costs
  steps,    // for a while: every step of the counters, at the moment when a read is cheapest
};

class Sensor {
 public:
  virtual ~Sensor() = default;
  virtual std::span<const Channel> channels() const = 0;  // fixed after open

  // One reading for each channel, in their order. A channel that is not due gets ReadCode::skipped.
  virtual void read(std::span<Reading> readings, Attention attention = Attention::now) noexcept = 0;

  // Of channels that tell several values at once: what the last read() brought of them, oldest first, with the times at
  // which the device took them. Their own readings are skipped. Channels are counted from this sensor's first.
  virtual std::span<const Sample> history() const noexcept { return {}; }

  // When to read next, after a read that was due at `last_ns`: an absolute moment, so that lateness does not add up.
  virtual std::int64_t next_read_ns(std::int64_t last_ns, Attention attention) const noexcept;

  // Before the first read, where the user wants another period than the usual one. No sensor is read more often than
  // it has news.
  void request_period(std::int64_t period_ns) { requested_period_ns_ = period_ns; }

 protected:
  std::optional<std::int64_t> requested_period_ns_;
};

// What a probe may look at.
class ProbeContext {
 public:
  explicit ProbeContext(SystemRoot root, std::string program = {}, MeasuredProcesses measured = {})
      : root_(std::move(root)), program_(std::move(program)), measured_(std::move(measured)) {}

  const SystemRoot& root() const { return root_; }
  const std::string& program() const { return program_; }  // path of this executable, for remedies that name it
  const MeasuredProcesses& measured() const { return measured_; }
  const HostKind& host() const;  // found out when first asked for: most probes need not know

 private:
  SystemRoot root_;
  std::string program_;
  MeasuredProcesses measured_;
  mutable std::optional<HostKind> host_;
};

struct Probe {
  SensorStatus status;
  std::vector<std::unique_ptr<Sensor>> sensors;  // some when the state is measured or estimated; one thread each
};

struct SensorBackend {
  std::string_view name;
  std::string_view summary;
  Probe (*probe)(const ProbeContext&);
  bool loads_library = false;  // of somebody else, into this process
};

}  // namespace joulemap::sensors

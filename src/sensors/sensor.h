// SPDX-License-Identifier: Apache-2.0
//
// Sensor: a readable source of energy, power and related quantities. One owner, one thread. After open, read() neither
// allocates nor locks nor logs: errors are codes in the reading.
//
// A sensor schedules its own reads (read_schedule.h has the defaults). Near the edge of a window the caller requests
// another SamplingMode, because there the times of counter updates matter more than the cost of a read.
//
// A backend is one kind of sensor (perf_event, powercap, ...). Its probe inspects the machine and returns both the
// status that `doctor` prints and, where usable, the open sensors: one function, so that the two cannot disagree.
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
#include "sensors/measured_process_set.h"

namespace joulemap::sensors {

enum class SamplingMode : std::uint8_t {
  relaxed,       // between edges: reads at low cost
  near_edge,     // near an edge: locate the counter updates
  immediate,     // read every channel at once, at any cost
  every_update,  // between edges: read each counter update once, at the time when a read is cheapest
};

class Sensor {
 public:
  virtual ~Sensor() = default;
  virtual std::span<const Channel> channels() const = 0;  // fixed after open

  // One reading for each channel, in their order. A channel that is not due gets ReadCode::skipped.
  virtual void read(std::span<Reading> readings, SamplingMode mode = SamplingMode::immediate) noexcept = 0;

  // For channels that return several values at once: the values of the last read(), oldest first, with the device's
  // timestamps. The readings of these channels have the code `skipped`. Channel numbers are relative to this sensor's
  // first channel.
  virtual std::span<const Sample> history() const noexcept { return {}; }

  // Time of the next read, after a read that was due at `last_ns`: an absolute time, so that delays do not accumulate.
  virtual std::int64_t next_read_ns(std::int64_t last_ns, SamplingMode mode) const noexcept;

  // Call before the first read to override the default period between window edges. A sensor limits the period, for
  // example so that no counter wraps between two reads.
  void request_read_period(std::int64_t period_ns) { requested_read_period_ns_ = period_ns; }

 protected:
  std::optional<std::int64_t> requested_read_period_ns_;
};

// Inputs of a probe.
class ProbeContext {
 public:
  explicit ProbeContext(SystemRoot root, std::string program = {}, MeasuredProcessCriteria measured = {})
      : system_root_(std::move(root)), program_(std::move(program)), measured_process_criteria_(std::move(measured)) {}

  const SystemRoot& root() const { return system_root_; }
  const std::string& program_path() const { return program_; }  // path of this executable, for remedies that name it
  const MeasuredProcessCriteria& measured_processes() const { return measured_process_criteria_; }
  const HostTraits& host() const;  // computed on first use: most probes do not need it

 private:
  SystemRoot system_root_;
  std::string program_;
  MeasuredProcessCriteria measured_process_criteria_;
  mutable std::optional<HostTraits> host_traits_;
};

struct ProbeResult {
  SensorStatus status;
  std::vector<std::unique_ptr<Sensor>> sensors;  // not empty when the state is measured or estimated; one thread each
};

struct SensorBackend {
  std::string_view name;
  std::string_view help_text;
  ProbeResult (*probe_sensors)(const ProbeContext&);
  bool loads_library = false;  // loads a third-party library into this process
};

}  // namespace joulemap::sensors

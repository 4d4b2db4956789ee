// SPDX-License-Identifier: Apache-2.0
//
// Sensor: something that can be read for energy or power. One owner, one thread; after it is open, read()
// neither allocates nor locks nor logs: what goes wrong is a code in the reading.
//
// A backend is one kind of sensor (perf_event, powercap, ...). Its probe looks at the machine and gives back both
// the verdict that `doctor` prints and, where it can be used, the open sensor: one function, so that the two cannot
// disagree.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/system_root.h"
#include "model/channel.h"
#include "model/reading.h"
#include "model/sensor_status.h"

namespace joulemap::sensors {

class Sensor {
 public:
  virtual ~Sensor() = default;
  virtual std::span<const Channel> channels() const = 0;        // fixed after open
  virtual void read(std::span<Reading> readings) noexcept = 0;  // one for each channel, in their order
};

// What a probe may look at.
class ProbeContext {
 public:
  explicit ProbeContext(SystemRoot root, std::string program = {})
      : root_(std::move(root)), program_(std::move(program)) {}

  const SystemRoot& root() const { return root_; }
  const std::string& program() const { return program_; }  // path of this executable, for remedies that name it
  const HostKind& host() const;                            // found out when first asked for: most probes need not know

 private:
  SystemRoot root_;
  std::string program_;
  mutable std::optional<HostKind> host_;
};

struct Probe {
  SensorStatus status;
  std::unique_ptr<Sensor> sensor;  // there when the state is measured or estimated
};

struct SensorBackend {
  std::string_view name;
  std::string_view summary;
  Probe (*probe)(const ProbeContext&);
};

}  // namespace joulemap::sensors

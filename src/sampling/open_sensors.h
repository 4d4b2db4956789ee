// SPDX-License-Identifier: Apache-2.0
//
// Opens every sensor of this machine that can be read, or those that were asked for by name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/system_root.h"
#include "model/sensor_status.h"
#include "sensors/sensor.h"

namespace joulemap::sampling {

struct SensorOptions {
  SystemRoot root;
  std::string sensors;  // as --sensors takes them; empty for all
  std::string program;  // path of this executable, for remedies
  std::string replay;   // a recording whose samples are given again, instead of this machine's sensors
  std::optional<std::int64_t> period_ns;     // between two reads, instead of each sensor's own
  sensors::MeasuredProcesses measured = {};  // all other processes are background
  bool uses_borrowed_rights = false;         // of the program (base/borrowed_rights.h); given up on the way
};

struct OpenSensors {
  std::vector<SensorStatus> statuses;  // of all that were looked at
  std::vector<std::unique_ptr<sensors::Sensor>> sensors;
  bool estimates_asked_for = false;  // by name: then they check what was measured
};

// A probe of each backend, in their order. Borrowed rights open files; they are given up before a foreign library is loaded.
Result<std::vector<sensors::Probe>> probe_backends(std::span<const sensors::SensorBackend* const> backends,
                                                   const sensors::ProbeContext& context, bool uses_borrowed_rights);

// Fails for a sensor name that does not exist and for a recording that cannot be read.
Result<OpenSensors> open_sensors(const SensorOptions& options);

}  // namespace joulemap::sampling

// SPDX-License-Identifier: Apache-2.0
//
// Opens every readable sensor of this machine, or those requested by name.
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
  std::string sensors;                                       // syntax of --sensors; empty for all
  std::string program;                                       // path of this executable, for remedies
  std::string replay;                                        // recording to replay instead of this machine's sensors
  std::optional<std::int64_t> period_ns;                     // read period that replaces each sensor's own
  sensors::MeasuredProcessCriteria measured_processes = {};  // all other processes are background
  bool uses_file_capabilities = false;  // of the program (base/file_capabilities.h); dropped during opening
};

struct OpenSensors {
  std::vector<SensorStatus> statuses;  // of all probed backends
  std::vector<std::unique_ptr<sensors::Sensor>> sensors;
  bool are_estimates_requested = false;  // requested by name: they become cross-checks of measurements
};

// Probes each backend; results are in the order of `backends`. File capabilities are raised to open files, and dropped
// before a backend loads a third-party library.
Result<std::vector<sensors::ProbeResult>> probe_backends(std::span<const sensors::SensorBackend* const> backends,
                                                         const sensors::ProbeContext& context,
                                                         bool uses_file_capabilities);

// Fails for an unknown sensor name and for an unreadable recording.
Result<OpenSensors> open_sensors(const SensorOptions& options);

}  // namespace joulemap::sampling

// SPDX-License-Identifier: Apache-2.0
//
// RecordedEnvironment: what a recording contains about machines, versions, sensors and clocks. Plain data.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/channel.h"
#include "model/recorded.h"
#include "model/report_result.h"

namespace joulemap::bundle {

// A fact, and the machine whose part of the recording contains it.
struct HostFact {
  std::string host;
  EnvironmentFact fact;
};

struct RecordedEnvironment {
  std::vector<RecordingSource> sources;
  std::vector<HostFact> facts;         // each once per machine, in the order of the recording; without ranks
  std::vector<Channel> channels;       // of all sources
  std::optional<double> clock_jump_s;  // largest jump of a wall clock against its monotonic clock; none: no jump
};

// Reads the recording at `paths` once.
Result<RecordedEnvironment> read_environment(std::span<const std::string> paths);

// JSON of schema joulemap.environment/1, one line. Hosts and calibration come from the report.
std::string environment_json(const RecordedEnvironment& environment, const ReportResult& report);

}  // namespace joulemap::bundle

// SPDX-License-Identifier: Apache-2.0
//
// DomainEnergy: the report row of a domain, chosen from all channels that measure it. Plain data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/channel.h"

namespace joulemap {

// Energy from another channel of the same domain: compared with the first, never added.
struct CrossCheck {
  std::string sensor;
  std::string channel;
  double joules = 0;
  double uncertainty_j = 0;  // half width of the 95 % interval
};

struct DomainEnergy {
  std::string name;
  std::optional<double> joules;
  std::optional<double> uncertainty_j;  // half width of the interval: 95 % in `stat`, 90 % in ReportResult
  std::optional<double> mean_w;
  std::optional<Provenance> provenance;  // none when there are no joules
  std::string reason;                    // why there are no joules, such as "frozen"; empty when there are
  bool is_counted = false;               // part of the total; false for a part of a counted domain
  std::string part_of;
  std::string sensor;
  std::string channel;            // channel of `sensor` that provides the value
  std::string model;              // formula of an estimate
  std::string device_model = {};  // "NVIDIA H200"; empty when unknown
  std::vector<CrossCheck> checks;
};

}  // namespace joulemap

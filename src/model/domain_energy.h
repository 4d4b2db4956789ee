// SPDX-License-Identifier: Apache-2.0
//
// DomainEnergy: the one row a report shows for a domain, chosen from all channels that watch it. Plain data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/channel.h"

namespace joulemap {

// What another channel of the same domain said: a check, never added.
struct CrossCheck {
  std::string sensor;
  std::string channel;
  double joules = 0;
  double uncertainty_j = 0;
};

struct DomainEnergy {
  std::string name;
  std::optional<double> joules;
  std::optional<double> uncertainty_j;  // half width at 95 %
  std::optional<double> mean_w;
  std::optional<Provenance> provenance;  // none when there are no joules
  std::string reason;                    // why there are none
  bool counted = false;                  // part of the total; false for what another counted domain contains
  std::string part_of;
  std::string sensor;
  std::string channel;            // of that sensor: the one whose value this is
  std::string model;              // of an estimate: the formula
  std::string device_model = {};  // "NVIDIA H200"; empty where not known
  std::vector<CrossCheck> checks;
};

}  // namespace joulemap

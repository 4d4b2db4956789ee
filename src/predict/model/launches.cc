// SPDX-License-Identifier: Apache-2.0
#include "predict/model/launches.h"

#include <cmath>
#include <utility>

#include "predict/model/physics.h"

namespace joulemap::predict {

Launches fit_launches(std::span<const MeasuredOperation> rows) {
  std::map<std::string, std::pair<double, int>, std::less<>> sums;
  for (const MeasuredOperation& row : rows) {
    if (!(row.launches > 0)) continue;
    for (const std::string& group : groups_of(row.operation)) {
      auto& [launches, count] = sums[group];
      launches += std::log(row.launches);
      ++count;
    }
  }
  Launches means;
  for (const auto& [group, sum] : sums) means[group] = std::exp(sum.first / sum.second);
  return means;
}

double launches_of(const Launches& launches, const Operation& operation) {
  if (operation.kind == Kind::view) return 0;
  for (const std::string& group : groups_of(operation)) {
    if (const auto at = launches.find(group); at != launches.end()) return at->second;
  }
  return 1;
}

}  // namespace joulemap::predict

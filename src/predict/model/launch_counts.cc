// SPDX-License-Identifier: Apache-2.0
#include "predict/model/launch_counts.h"

#include <cmath>
#include <utility>

#include "predict/model/physics.h"

namespace joulemap::predict {

LaunchCounts fit_launch_counts(std::span<const MeasuredOperation> rows) {
  std::map<std::string, std::pair<double, int>, std::less<>> sums;
  for (const MeasuredOperation& row : rows) {
    if (!(row.launches > 0)) continue;
    for (const std::string& group : coefficient_group_names(row.operation)) {
      auto& [launches, count] = sums[group];
      launches += std::log(row.launches);
      ++count;
    }
  }
  LaunchCounts means;
  for (const auto& [group, sum] : sums) means[group] = std::exp(sum.first / sum.second);
  return means;
}

double launch_count(const LaunchCounts& launches, const Operation& operation) {
  if (operation.kind == Kind::view) return 0;
  for (const std::string& group : coefficient_group_names(operation)) {
    if (const auto launch_entry = launches.find(group); launch_entry != launches.end()) return launch_entry->second;
  }
  return 1;
}

}  // namespace joulemap::predict

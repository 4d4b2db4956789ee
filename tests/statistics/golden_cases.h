// SPDX-License-Identifier: Apache-2.0
//
// What lies in tests/data/statistics: inputs, and what another program said of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace joulemap {

struct GoldenInput {
  std::vector<double> first;   // or `values`
  std::vector<double> second;  // or `sizes`
  std::vector<double> groups;  // strata: 0 or 1 for each value
  std::vector<double> strata;  // strata: index of each value's stratum
  std::vector<double> levels;  // factorial: levels of each value, one after the other
  std::vector<double> blocks;  // factorial: block of each value
  std::vector<std::vector<double>> lists() const;
};

struct GoldenResult {
  std::string id;
  std::string test;
  std::string reference_program;
  std::optional<double> p;
  std::optional<double> statistic;
  std::optional<double> estimate;
  std::optional<double> low;
  std::optional<double> high;
  std::vector<double> values;
};

std::map<std::string, GoldenInput> read_golden_inputs();
std::vector<GoldenResult> read_golden_results(const std::string& file);  // "r.json"

}  // namespace joulemap

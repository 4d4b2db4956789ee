// SPDX-License-Identifier: Apache-2.0
#include "report/text/costliest_layers.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/text.h"

namespace joulemap::report {
namespace {

constexpr std::string_view kProbeModeName = "probe";
constexpr std::string_view kOptimizerPhaseName = "optimizer";
constexpr std::string_view kBackgroundScopeName = "background";

bool is_numeric_part(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](char letter) { return letter >= '0' && letter <= '9'; });
}

// Name under which corresponding modules of repeated blocks are summed: "blocks.2.mlp.0" becomes "blocks.*.mlp".
// Trailing numbers, which are the elements of a Sequential, are dropped. A name of numbers alone does not change.
std::string wildcard_module_name(std::string_view name) {
  std::vector<std::string_view> parts = split(name, '.');
  while (parts.size() > 1 && is_numeric_part(parts.back())) parts.pop_back();
  if (std::ranges::all_of(parts, is_numeric_part)) return std::string(name);
  std::string pattern;
  for (const std::string_view part : parts) {
    pattern += pattern.empty() ? "" : ".";
    pattern += is_numeric_part(part) ? "*" : part;
  }
  return pattern;
}

bool is_module_row(const ReportRow& row) {
  return row.path.size() >= 3 && row.path.front() != kProbeModeName && row.path[1] != kOptimizerPhaseName;
}

std::string_view strip_trailing_numbers(std::string_view name) {
  while (true) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || !is_numeric_part(name.substr(dot + 1))) return name;
    name = name.substr(0, dot);
  }
}

}  // namespace

std::set<std::string> list_module_names(std::span<const ReportRow> layer_rows) {
  std::set<std::string> modules;
  for (const ReportRow& row : layer_rows) {
    if (is_module_row(row)) modules.insert(row.path.back());
  }
  return modules;
}

std::vector<LayerCost> costliest_layers(std::span<const ReportRow> layer_rows, std::span<const ReportRow> module_rows,
                                        LayerCostUnit unit) {
  const bool by_energy = unit == LayerCostUnit::joules;
  const std::set<std::string> modules = list_module_names(layer_rows);
  std::map<std::string, LayerCost> sums;
  for (const ReportRow& row : module_rows) {
    if (row.path.size() != 1 || !modules.contains(row.path.front()) || (by_energy && !row.energy_j)) continue;
    const std::string name = wildcard_module_name(row.path.back());
    LayerCost& sum = sums[name];
    sum.name = name;
    sum.cost_j_or_s += by_energy ? *row.energy_j : row.time_s;
    if (row.low_j && row.high_j) sum.half_width_j += (*row.high_j - *row.low_j) / 2;
    sum.modules.emplace(strip_trailing_numbers(row.path.back()));
  }
  std::vector<LayerCost> layers;
  for (auto& [pattern, sum] : sums) layers.push_back(std::move(sum));
  std::ranges::stable_sort(layers, std::greater(), &LayerCost::cost_j_or_s);
  return layers;
}

bool is_background_row(const ReportRow& row) {
  return row.path.size() == 1 && row.path.front() == kBackgroundScopeName;
}

double background_energy_j(std::span<const ReportRow> rows) {
  double joules = 0;
  for (const ReportRow& row : rows) {
    if (is_background_row(row)) joules += row.energy_j.value_or(0);
  }
  return joules;
}

double noticeable_background_j(const ReportResult& result) {
  const double joules = background_energy_j(result.rows);
  const double all_j = result.attributed_j.value_or(0) + result.idle_j.value_or(0) + result.unattributed_j.value_or(0);
  return joules >= kMinShownEnergyShare * all_j ? joules : 0;
}

}  // namespace joulemap::report

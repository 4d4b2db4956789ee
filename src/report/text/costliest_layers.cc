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
constexpr std::string_view kWorkerModeName = "worker";
constexpr std::string_view kOptimizerPhaseName = "optimizer";
constexpr std::string_view kDataLoaderPhaseName = "dataloader";

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

// Below a DataLoader are the names of its workers and of their code.
bool is_module_row(const ReportRow& row) {
  return row.path.size() >= 3 && row.path.front() != kProbeModeName && row.path.front() != kWorkerModeName &&
         row.path[1] != kOptimizerPhaseName && row.path[1] != kDataLoaderPhaseName;
}

std::string_view strip_trailing_numbers(std::string_view name) {
  while (true) {
    const std::size_t dot_position = name.rfind('.');
    if (dot_position == std::string_view::npos || !is_numeric_part(name.substr(dot_position + 1))) return name;
    name = name.substr(0, dot_position);
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

namespace {

// A module includes its submodules if its own operations cost at least this part of what the submodules cost.
constexpr double kMinOwnToSubmoduleCostRatio = 0.5;
constexpr std::size_t kMaxNamedSubmodules = 3;

struct LayerSum {
  LayerCost cost;
  std::vector<std::string> submodules;  // patterns of the direct submodules that are still apart
  bool has_element_numbers = false;     // rows are elements of a list or Sequential
};
using LayerSums = std::map<std::string, LayerSum>;  // by pattern

// The nearest enclosing module with a sum; end() if there is none.
LayerSums::iterator find_enclosing_sum(LayerSums& sums, std::string_view pattern) {
  while (true) {
    const std::size_t dot_position = pattern.rfind('.');
    if (dot_position == std::string_view::npos) return sums.end();
    pattern = pattern.substr(0, dot_position);
    const auto enclosing_sum = sums.find(std::string(pattern));
    if (enclosing_sum != sums.end()) return enclosing_sum;
  }
}

std::string submodule_list_text(const LayerSum& sum, std::string_view pattern) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kMaxNamedSubmodules, sum.submodules.size()); ++i)
    text += (i == 0 ? "" : ", ") + sum.submodules[i].substr(pattern.size() + 1);
  return text + (sum.submodules.size() > kMaxNamedSubmodules ? " ..." : "");
}

// Deepest modules first, so that an included submodule has itself included what belongs to it.
void include_submodules(LayerSums& sums) {
  std::vector<std::string> patterns;
  for (const auto& [pattern, sum] : sums) patterns.push_back(pattern);
  std::ranges::stable_sort(patterns, std::greater(),
                           [](const std::string& pattern) { return std::ranges::count(pattern, '.'); });
  for (const std::string& pattern : patterns) {
    LayerSum& sum = sums.at(pattern);
    double submodules_cost = 0;
    for (const std::string& submodule : sum.submodules) submodules_cost += sums.at(submodule).cost.cost_j_or_s;
    if (!sum.submodules.empty() && sum.cost.cost_j_or_s >= kMinOwnToSubmoduleCostRatio * submodules_cost) {
      for (const std::string& submodule : sum.submodules) {
        sum.cost.cost_j_or_s += sums.at(submodule).cost.cost_j_or_s;
        sum.cost.half_width_j += sums.at(submodule).cost.half_width_j;
        sums.erase(submodule);
      }
      sum.cost.name += " incl. " + submodule_list_text(sum, pattern);
    } else if (!sum.submodules.empty()) {
      sum.cost.name += sum.has_element_numbers ? ".* itself" : " itself";
    }
    if (const auto enclosing_sum = find_enclosing_sum(sums, pattern); enclosing_sum != sums.end())
      enclosing_sum->second.submodules.push_back(pattern);
  }
}

}  // namespace

std::vector<LayerCost> costliest_layers(std::span<const ReportRow> layer_rows, std::span<const ReportRow> module_rows,
                                        LayerCostUnit unit) {
  const bool by_energy = unit == LayerCostUnit::joules;
  const std::set<std::string> modules = list_module_names(layer_rows);
  LayerSums sums;
  for (const ReportRow& row : module_rows) {
    if (row.path.size() != 1 || !modules.contains(row.path.front()) || (by_energy && !row.energy_j)) continue;
    const std::string name = wildcard_module_name(row.path.back());
    LayerCost& sum = sums[name].cost;
    sum.name = name;
    sums[name].has_element_numbers |= is_numeric_part(split(row.path.back(), '.').back());
    sum.cost_j_or_s += by_energy ? *row.energy_j : row.time_s;
    if (row.low_j && row.high_j) sum.half_width_j += (*row.high_j - *row.low_j) / 2;
    sum.modules.emplace(strip_trailing_numbers(row.path.back()));
  }
  include_submodules(sums);
  std::vector<LayerCost> layers;
  for (auto& [pattern, sum] : sums) layers.push_back(std::move(sum.cost));
  std::ranges::stable_sort(layers, std::greater(), &LayerCost::cost_j_or_s);
  return layers;
}

}  // namespace joulemap::report

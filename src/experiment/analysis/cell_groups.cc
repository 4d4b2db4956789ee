// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/cell_groups.h"

#include <algorithm>
#include <map>

namespace joulemap::experiment {
namespace {

// Values of a cell by block; if several rows of a block have a value, the first.
std::map<std::size_t, double> values_by_block(const ExperimentData& data, const ExperimentTable& table,
                                              std::size_t cell, std::size_t measure) {
  std::map<std::size_t, double> values;
  for (const std::size_t row : table.cells[cell].done_rows) {
    if (const std::optional<double> value = table.values_by_row[row][measure])
      values.emplace(data.rows[row].block, *value);
  }
  return values;
}

}  // namespace

std::vector<CellGroup> group_cells_by_other_factors(const ExperimentData& data, const ExperimentTable& table,
                                                    std::size_t factor) {
  std::map<std::vector<std::size_t>, CellGroup> groups;
  for (std::size_t cell = 0; cell < table.cells.size(); ++cell) {
    std::vector<std::size_t> key = table.cells[cell].level_indices;
    const std::size_t level = key[factor];
    key.erase(key.begin() + static_cast<std::ptrdiff_t>(factor));
    CellGroup& group = groups[key];
    if (group.cells.empty()) {
      group.factor = factor;
      group.cells.resize(data.factors[factor].levels.size());
      group.fixed_levels.assign(table.cells[cell].level_indices.begin(), table.cells[cell].level_indices.end());
      group.fixed_levels[factor].reset();
    }
    group.cells[level] = cell;
  }
  std::vector<CellGroup> group_list;
  group_list.reserve(groups.size());
  for (auto& [key, group] : groups) group_list.push_back(std::move(group));
  return group_list;
}

std::vector<std::vector<double>> values_in_common_blocks(const ExperimentData& data, const ExperimentTable& table,
                                                         std::span<const std::size_t> cells, std::size_t measure) {
  std::vector<std::map<std::size_t, double>> cell_values_by_block;
  for (const std::size_t cell : cells) cell_values_by_block.push_back(values_by_block(data, table, cell, measure));
  std::vector<std::vector<double>> values_by_cell(cells.size());
  for (const auto& entry : cell_values_by_block.front()) {
    const auto block = entry.first;  // clang 14 cannot capture a structured binding in a lambda
    const bool is_complete = std::all_of(cell_values_by_block.begin(), cell_values_by_block.end(),
                                         [&](const auto& map) { return map.find(block) != map.end(); });
    for (std::size_t i = 0; is_complete && i < cell_values_by_block.size(); ++i)
      values_by_cell[i].push_back(cell_values_by_block[i].at(block));
  }
  return values_by_cell;
}

}  // namespace joulemap::experiment

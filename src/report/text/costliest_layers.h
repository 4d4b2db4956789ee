// SPDX-License-Identifier: Apache-2.0
//
// The costliest layers of a run, for the answer of `record` and of the page: the energy of modules with all passes and
// devices together, corresponding modules of repeated blocks summed, without optimizer, probing and other processes.
// Pure; joules and seconds.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/report_result.h"

namespace joulemap::report {

// Answers mention what has at least this part of the energy.
inline constexpr double kMinShownEnergyShare = 0.05;

struct LayerCost {
  std::string name;  // of one module, or of the corresponding modules of repeated blocks: "blocks.*.mlp"
  double cost_j_or_s = 0;
  double half_width_j = 0;  // sum of the half widths of the rows, whose errors may be correlated
  std::set<std::string> modules;
};
enum class LayerCostUnit : unsigned char { joules, seconds };  // seconds where no energy is known

// The costliest first. `layer_rows` and `module_rows`: rows of `report --by layer` and `--by module`. Rows by module
// contain all passes of a layer; rows by layer show which of them are modules.
std::vector<LayerCost> costliest_layers(std::span<const ReportRow> layer_rows, std::span<const ReportRow> module_rows,
                                        LayerCostUnit unit);

std::set<std::string> list_module_names(std::span<const ReportRow> layer_rows);

// Whether the row is the energy of other processes and of the rest of the machine.
bool is_background_row(const ReportRow& row);
double background_energy_j(std::span<const ReportRow> rows);
// background_energy_j(), or 0 if it is less than kMinShownEnergyShare of all energy.
double noticeable_background_j(const ReportResult& result);

}  // namespace joulemap::report

// SPDX-License-Identifier: Apache-2.0
//
// The costliest layers of a run, for the answer of `record` and of the page: the energy of modules with all passes and
// devices together, corresponding modules of repeated blocks summed, without optimizer, probing and other processes.
// A module that computes much itself, such as an attention, includes its submodules: they are parts of one layer. A
// mere container of layers, such as a block, does not. Pure; joules and seconds.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/report_result.h"

namespace joulemap::report {

struct LayerCost {
  // Of one module, or of the corresponding modules of repeated blocks: "blocks.*.mlp"; with the submodules that it
  // includes: "blocks.*.attn incl. proj, qkv"; of a container, without its submodules: "blocks.* itself".
  std::string name;
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

}  // namespace joulemap::report

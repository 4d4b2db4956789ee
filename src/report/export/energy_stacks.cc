// SPDX-License-Identifier: Apache-2.0
#include "report/export/energy_stacks.h"

#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "report/plot/plots.h"
#include "report/text/text_style.h"
#include "scopes/path_tree.h"

namespace joulemap::report {
namespace {

std::string printable_frame_name(std::string_view name) { return printable(to_valid_utf8(name)); }

std::vector<std::string> stack_frames_of_row(const ReportRow& row, std::string_view level_name) {
  std::vector<std::string> frames = {printable_frame_name(row.device.empty() ? "machine" : row.device)};
  for (const std::string& branch : scopes::tree_path(row.path, level_name)) {
    const bool is_within = branch.starts_with('.') && frames.size() > 1;
    frames.push_back(is_within ? frames.back() + printable_frame_name(branch) : printable_frame_name(branch));
  }
  if (row.path.empty()) frames.push_back(printable_frame_name(row.display_name.empty() ? row.name : row.display_name));
  return frames;
}

}  // namespace

Result<EnergyStacks> energy_stacks(const RunView& view, std::string_view level_name) {
  const LevelView* const level = find_level(view, level_name);
  if (level == nullptr) {
    return Error{ErrorCode::not_found,
                 fmt::format("the recording contains no {}s", level_name.empty() ? "layer" : level_name),
                 "run joulemap report --by layer for the reason"};
  }
  EnergyStacks level_stacks{level->by, {}, 0};
  for (const ReportRow& row : level->rows) {
    level_stacks.stacks.push_back(
        {stack_frames_of_row(row, level->by), row.energy_j, row.time_s, row.count.value_or(0), row.cause});
    if (!row.energy_j) ++level_stacks.missing_energy_count;
  }
  std::map<IdleCause, double> idle_j;
  for (const IdleEntry& entry : level->idle) idle_j[entry.cause] += entry.energy_j.value_or(0);
  for (const auto& [cause, joules] : idle_j)
    level_stacks.stacks.push_back({{"idle", std::string(to_string(cause))}, joules, 0, 0});
  if (idle_j.empty() && level->idle_j) level_stacks.stacks.push_back({{"idle"}, level->idle_j, 0, 0});
  if (level->unattributed_j) level_stacks.stacks.push_back({{"not attributed"}, level->unattributed_j, 0, 0});
  return level_stacks;
}

}  // namespace joulemap::report

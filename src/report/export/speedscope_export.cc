// SPDX-License-Identifier: Apache-2.0
//
// export --to speedscope: JSON with one profile in joules and one in seconds, over the same stacks.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "formats/json_writer.h"
#include "report/export/energy_stacks.h"
#include "report/export/exports.h"

namespace joulemap::report {
namespace {

using formats::JsonWriter;

struct WeightedStack {
  const EnergyStack* stack = nullptr;
  double stack_weight = 0;
};

class FrameTable {
 public:
  explicit FrameTable(const std::vector<EnergyStack>& stacks) {
    for (const EnergyStack& stack : stacks) {
      for (const std::string& frame : stack.frames) {
        if (frame_indices_.try_emplace(frame, frame_names_.size()).second) frame_names_.push_back(frame);
      }
    }
  }
  const std::vector<std::string>& names() const { return frame_names_; }
  std::uint64_t frame_index(const std::string& frame) const { return frame_indices_.at(frame); }

 private:
  std::map<std::string, std::uint64_t> frame_indices_;
  std::vector<std::string> frame_names_;
};

void write_speedscope_profile(JsonWriter& json, std::string_view name, std::string_view unit, const FrameTable& frames,
                              const std::vector<WeightedStack>& weighted) {
  double sum = 0;
  for (const WeightedStack& weighted_stack : weighted) sum += weighted_stack.stack_weight;
  json.begin_object().member("type", "sampled").member("name", name).member("unit", unit);
  json.member("startValue", 0.0).member("endValue", sum).key("samples").begin_array();
  for (const WeightedStack& weighted_stack : weighted) {
    json.begin_array();
    for (const std::string& frame : weighted_stack.stack->frames) json.value(frames.frame_index(frame));
    json.end_array();
  }
  json.end_array().key("weights").begin_array();
  for (const WeightedStack& weighted_stack : weighted) json.value(weighted_stack.stack_weight);
  json.end_array().end_object();
}

}  // namespace

Result<std::string> speedscope_json(const RunView& view, const ExportOptions& query) {
  const Result<EnergyStacks> level_stacks = energy_stacks(view, query.by);
  if (!level_stacks) return level_stacks.error();
  std::vector<WeightedStack> joules;
  std::vector<WeightedStack> times;
  for (const EnergyStack& stack : level_stacks->stacks) {
    if (stack.energy_j.value_or(0) > 0) joules.push_back({&stack, *stack.energy_j});
    if (stack.time_s > 0) times.push_back({&stack, stack.time_s});
  }
  if (joules.empty()) return missing_energy_error(level_stacks->by);
  // Sorted so that stacks of one branch are neighbours: speedscope's first view shows stacks in file order.
  const auto get_frames = [](const WeightedStack& weighted_stack) -> const std::vector<std::string>& {
    return weighted_stack.stack->frames;
  };
  std::ranges::stable_sort(joules, {}, get_frames);
  std::ranges::stable_sort(times, {}, get_frames);
  const FrameTable frames(level_stacks->stacks);
  JsonWriter json;
  json.begin_object().member("$schema", "https://www.speedscope.app/file-format-schema.json");
  json.member("exporter", "joulemap").member("name", command_text(view.run)).member("activeProfileIndex", 0);
  json.key("shared").begin_object().key("frames").begin_array();
  for (const std::string& name : frames.names()) json.begin_object().member("name", name).end_object();
  json.end_array().end_object().key("profiles").begin_array();
  // speedscope has no energy unit.
  write_speedscope_profile(json, fmt::format("joules by {}", level_stacks->by), "none", frames, joules);
  if (!times.empty())
    write_speedscope_profile(json, fmt::format("time by {}", level_stacks->by), "seconds", frames, times);
  json.end_array().end_object();
  return std::move(json).text() + "\n";
}

}  // namespace joulemap::report

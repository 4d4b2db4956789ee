// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_steps.h"

#include <algorithm>
#include <map>

namespace joulemap::ingest {
namespace {

// Removes events inside another one of their thread. `steps` are in order of track, start and decreasing end.
void keep_outermost_steps(std::vector<XStep>& steps) {
  std::vector<XStep> outermost_steps;
  for (const XStep& step : steps) {
    const bool is_inside = !outermost_steps.empty() && outermost_steps.back().track == step.track &&
                           step.end_ns <= outermost_steps.back().end_ns;
    if (!is_inside) outermost_steps.push_back(step);
  }
  steps = std::move(outermost_steps);
}

// Keeps the events of the name with the largest total time.
void keep_steps_of_dominant_name(std::vector<XStep>& steps) {
  std::map<std::string_view, std::int64_t> times_ns;
  for (const XStep& step : steps) times_ns[step.name] += step.end_ns - step.start_ns;
  const auto dominant_name_time = std::max_element(times_ns.begin(), times_ns.end(),
                                                   [](const auto& a, const auto& b) { return a.second < b.second; });
  if (dominant_name_time == times_ns.end()) return;
  const std::string_view name = dominant_name_time->first;
  std::erase_if(steps, [&](const XStep& step) { return step.name != name; });
}

}  // namespace

XSteps select_profile_steps(std::vector<XStep> candidates) {
  XSteps result;
  if (candidates.empty()) return result;
  const auto source = std::min_element(candidates.begin(), candidates.end(), [](const XStep& a, const XStep& b) {
                        return a.source < b.source;
                      })->source;
  std::erase_if(candidates, [&](const XStep& step) { return step.source != source; });
  result.are_inferred = source >= XStepSource::function_call;
  if (result.are_inferred) {
    std::sort(candidates.begin(), candidates.end(), [](const XStep& a, const XStep& b) {
      return a.track != b.track         ? a.track < b.track
             : a.start_ns != b.start_ns ? a.start_ns < b.start_ns
                                        : a.end_ns > b.end_ns;
    });
    keep_outermost_steps(candidates);
    keep_steps_of_dominant_name(candidates);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const XStep& a, const XStep& b) { return a.start_ns < b.start_ns; });
  const bool have_step_numbers =
      std::all_of(candidates.begin(), candidates.end(), [](const XStep& step) { return step.number.has_value(); });
  for (std::size_t i = 0; i < candidates.size() && !have_step_numbers; ++i) candidates[i].number = i;
  result.steps = std::move(candidates);
  return result;
}

}  // namespace joulemap::ingest

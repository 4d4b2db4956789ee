// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/step_details.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "base/clock.h"
#include "model/run_view.h"

namespace joulemap::attribution {
namespace {

// Time covered by at least one of the spans. Sorts them.
double length_of_union_s(std::vector<TimeSpan>& spans) {
  std::ranges::sort(spans, {}, &TimeSpan::begin_ns);
  std::int64_t covered_ns = 0;
  std::int64_t until_ns = INT64_MIN;
  for (const TimeSpan& span : spans) {
    const std::int64_t from_ns = std::max(span.begin_ns, until_ns);
    if (span.end_ns <= from_ns) continue;
    covered_ns += span.end_ns - from_ns;
    until_ns = span.end_ns;
  }
  return seconds(covered_ns);
}

}  // namespace

void StepDetails::remove_unless_kept(std::uint64_t index) {
  const bool is_among_longest =
      std::ranges::any_of(longest_steps_, [&](const auto& entry) { return entry.second == index; });
  if (!is_evenly_spaced(index) && !is_among_longest) steps_.erase(index);
}

void StepDetails::double_stride() {
  even_stride_ *= 2;
  even_step_count_ = (step_count_ + even_stride_ - 1) / even_stride_;
  std::vector<std::uint64_t> indices;
  for (const auto& [index, step] : steps_) indices.push_back(index);
  for (const std::uint64_t index : indices) remove_unless_kept(index);
}

// Of equal steps the first ones count: else each step would displace an earlier one.
bool StepDetails::keep_if_among_longest(std::int64_t duration_ns, std::uint64_t index) {
  const bool has_max_long_steps = longest_steps_.size() >= kMaxLongStepDetails;
  if (has_max_long_steps && duration_ns <= longest_steps_.begin()->first) return false;
  longest_steps_.emplace(duration_ns, index);
  if (!has_max_long_steps) return true;
  const std::uint64_t shortest_step_index = longest_steps_.begin()->second;
  longest_steps_.erase(longest_steps_.begin());
  remove_unless_kept(shortest_step_index);
  return true;
}

bool StepDetails::add_step(const StepRecord& step, std::int64_t first_kernel_ns) {
  const std::uint64_t index = step_count_++;
  const auto previous_step = index == 0 ? steps_.end() : steps_.find(index - 1);
  // Compares first, so that the subtraction cannot overflow: a program may give its steps any numbers.
  const bool is_consecutive_step = last_step_number_ < step.number && last_step_number_ == step.number - 1;
  if (previous_step != steps_.end() && is_consecutive_step)
    previous_step->second.gpu_span.end_ns = std::max(first_kernel_ns, previous_step->second.gpu_span.begin_ns);
  last_step_number_ = step.number;
  const bool is_among_longest = keep_if_among_longest(step.end_ns - step.begin_ns, index);
  if (!is_evenly_spaced(index) && !is_among_longest) return false;
  even_step_count_ += is_evenly_spaced(index) ? 1 : 0;
  steps_.try_emplace(index, CollectedStep{.number = step.number,
                                          .begin_ns = step.begin_ns,
                                          .gpu_span = {first_kernel_ns, first_kernel_ns},
                                          .kernels = 0,
                                          .layers = {},
                                          .busy_s = {}});
  if (even_step_count_ > kMaxEvenlySpacedStepDetails) double_stride();
  return steps_.contains(index);
}

void StepDetails::add_kernels(std::span<const StepKernel> kernels) {
  const auto newest_step = steps_.find(step_count_ - 1);
  if (newest_step == steps_.end()) return;
  CollectedStep& step = newest_step->second;
  std::unordered_map<const LayerKey*, LayerInStep> layers;
  std::map<const std::string*, std::vector<TimeSpan>> spans;
  for (const StepKernel& kernel : kernels) {
    LayerInStep& layer = layers[kernel.layer];
    layer.layer = kernel.layer;
    layer.time_s += seconds(kernel.span.end_ns - kernel.span.begin_ns);
    layer.energy_j += kernel.energy_j;
    spans[kernel.device_name].push_back(kernel.span);
    step.gpu_span.end_ns = std::max(step.gpu_span.end_ns, kernel.span.end_ns);
  }
  step.kernels = kernels.size();
  for (const auto& [key, layer] : layers) step.layers.push_back(layer);
  // The order must not depend on addresses.
  const auto is_before = [](const LayerInStep& a, const LayerInStep& b) {
    if (a.energy_j != b.energy_j) return a.energy_j > b.energy_j;
    if (a.layer == nullptr || b.layer == nullptr) return a.layer != nullptr && b.layer == nullptr;
    return *a.layer < *b.layer;
  };
  std::ranges::sort(step.layers, is_before);
  // `spans` is by address of the device's name; several addresses may hold the same name.
  std::map<std::string, std::vector<TimeSpan>> by_device;
  for (auto& [device, kernel_spans] : spans) {
    std::vector<TimeSpan>& merged_spans = by_device[*device];
    merged_spans.insert(merged_spans.end(), kernel_spans.begin(), kernel_spans.end());
  }
  for (auto& [device, kernel_spans] : by_device) step.busy_s[device] = length_of_union_s(kernel_spans);
}

std::vector<const CollectedStep*> StepDetails::steps() const {
  std::vector<const CollectedStep*> collected_steps;
  for (const auto& [index, step] : steps_) collected_steps.push_back(&step);
  return collected_steps;
}

}  // namespace joulemap::attribution

// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/activity_sums.h"

#include <algorithm>

#include "attribution/gpu/lost_kernels.h"
#include "base/clock.h"

namespace joulemap::attribution {

std::string ProcessNames::device_of(std::uint32_t queue) const {
  const auto known = queues.find(queue);
  if (known == queues.end()) return {};
  return known->second.device.empty() ? "ordinal " + std::to_string(known->second.ordinal) : known->second.device;
}

Extrapolation ProcessNames::extrapolation_of(TimeSpan span, bool is_one_time, std::uint32_t class_id) const {
  if (is_one_time || class_id == kLostKernelClass || !steps.is_light_mode()) return {span, 1};
  return steps.extrapolate(span);
}

void ProcessNames::group_kernels() {
  if (classes.size() > kMaxKernelNames) {
    std::vector<std::pair<std::int64_t, std::uint32_t>> ranked;
    ranked.reserve(classes.size());
    for (const auto& [id, known] : classes) {
      const auto time = kernel_ns.find(id);
      ranked.emplace_back(time == kernel_ns.end() ? 0 : time->second, id);
    }
    const auto last_named = ranked.begin() + static_cast<std::ptrdiff_t>(kMaxKernelNames);
    std::ranges::nth_element(ranked, last_named, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    for (auto other = last_named; other != ranked.end(); ++other) {
      const KernelKind kind = classes[other->second].kind;
      classes[other->second] = {other->second, kind, std::string(kOtherKernels), {}, {}};
    }
    grouped_kernels = classes.size() - kMaxKernelNames;
  }
  kernel_ns.clear();
}

void ActivitySums::add(std::uint32_t process, const Activity& activity) {
  ProcessNames& names = processes_[process];
  for (const Scope& scope : activity.scopes) {
    names.scopes.add(scope);
    names.trains = names.trains || (scope.kind == ScopeKind::mode && scope.name == kTrainMode);
  }
  for (const KernelClass& known : activity.classes) names.classes.insert_or_assign(known.id, known);
  for (const KernelQueue& queue : activity.queues) names.queues.insert_or_assign(queue.id, queue);
  double cpu_s = 0;
  for (const ScopeTally& tally : activity.scope_tallies) cpu_s += seconds(tally.cpu_ns + tally.helper_threads_ns);
  captured_s_.add(activity.begin_ns, activity.end_ns, cpu_s);
  std::map<std::pair<std::uint32_t, bool>, double> busy_s;
  for (const KernelTally& tally : activity.kernel_tallies) {
    const bool is_not_extrapolated = names.scopes.is_one_time(tally.scope) || tally.class_id == kLostKernelClass;
    busy_s[{tally.queue, is_not_extrapolated}] += seconds(tally.time_ns);
    names.kernel_ns[tally.class_id] += tally.time_ns;
  }
  for (const auto& [key, time_s] : busy_s) {
    busy_.push_back({process, key.first, key.second, {activity.begin_ns, activity.end_ns}, time_s});
  }
  std::map<std::pair<std::uint32_t, bool>, double> wait_s;
  for (const WaitTally& wait : activity.waits)
    wait_s[{wait.queue, names.scopes.is_one_time(wait.scope)}] += seconds(wait.time_ns);
  for (const auto& [key, time_s] : wait_s)
    waits_.push_back({process, key.first, key.second, {activity.begin_ns, activity.end_ns}, time_s});
  for (const StepRecord& step : activity.steps) {
    names.steps.add(step);
    if (!names.steps_span) names.steps_span = TimeSpan{step.begin_ns, step.end_ns};
    if (step.begin_ns > names.steps_span->end_ns)
      names.between_steps.push_back({names.steps_span->end_ns, step.begin_ns});
    names.steps_span->end_ns = std::max(names.steps_span->end_ns, step.end_ns);
  }
  has_activity_ = has_activity_ || !activity.scope_tallies.empty() || !activity.kernel_tallies.empty();
}

void ActivitySums::add_used_queues(std::uint32_t process, const Activity& activity) {
  for (const KernelTally& tally : activity.kernel_tallies) used_queues_.emplace(process, tally.queue);
}

void ActivitySums::finish() {
  captured_s_.finish();
  for (auto& [process, names] : processes_) names.group_kernels();
  for (const auto& [process, queue] : used_queues_) {
    const std::string device = processes_[process].device_of(queue);
    gpu_busy_s_.try_emplace(device, span_, cell_count_for(span_));
    gpu_slices_[device];
  }
  for (const DeviceInterval& busy : busy_) gpu_slices_[device_of(busy)].push_back(add_to_curve(busy, gpu_busy_s_));
  for (const DeviceInterval& wait : waits_) add_to_curve(wait, gpu_wait_s_);
  for (auto& [device, slices] : gpu_slices_) std::ranges::sort(slices, {}, &TimeSpan::begin_ns);
  for (auto* curves : {&gpu_busy_s_, &gpu_wait_s_}) {
    for (auto& [device, curve] : *curves) curve.finish();
  }
  busy_.clear();
  waits_.clear();
}

std::string ActivitySums::device_of(const DeviceInterval& interval) {
  return processes_[interval.process].device_of(interval.queue);
}

// Returns the span that the interval extrapolates to.
TimeSpan ActivitySums::add_to_curve(const DeviceInterval& interval, std::map<std::string, TimeCurve>& curves) {
  TimeCurve& curve = curves.try_emplace(device_of(interval), span_, cell_count_for(span_)).first->second;
  const Extrapolation all =
      processes_[interval.process].extrapolation_of(interval.span, interval.is_not_extrapolated, 0);
  curve.add(all.span.begin_ns, all.span.end_ns, interval.time_s * all.weight);
  return all.span;
}

}  // namespace joulemap::attribution

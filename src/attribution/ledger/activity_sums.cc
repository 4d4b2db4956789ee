// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/activity_sums.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <string>

#include "attribution/gpu/lost_kernels.h"
#include "base/clock.h"

namespace joulemap::attribution {
namespace {

constexpr TimeSpan kEmptySpan{INT64_MAX, INT64_MIN};

void extend_span(TimeSpan& span, TimeSpan part) {
  span = {std::min(span.begin_ns, part.begin_ns), std::max(span.end_ns, part.end_ns)};
}

}  // namespace

std::string ProcessActivity::device_of_queue(std::uint32_t queue) const {
  const auto kernel_queue = kernel_queues.find(queue);
  if (kernel_queue == kernel_queues.end()) return {};
  return kernel_queue->second.device.empty() ? "ordinal " + std::to_string(kernel_queue->second.ordinal)
                                             : kernel_queue->second.device;
}

std::span<const TimeSpan> ProcessActivity::idle_gaps_of(const std::string& device) const {
  const auto device_gaps = idle_gaps.find(device);
  return device_gaps == idle_gaps.end() ? std::span<const TimeSpan>() : device_gaps->second;
}

Extrapolation ProcessActivity::extrapolate(TimeSpan span, bool is_one_time, std::uint32_t class_id) const {
  if (is_one_time || class_id == kLostKernelClassId || !steps.is_light_mode()) return {span, 1};
  return steps.extrapolate(span);
}

void ProcessActivity::group_rare_kernel_classes() {
  if (kernel_classes.size() > kMaxKernelClassRows) {
    std::vector<std::pair<std::int64_t, std::uint32_t>> classes_by_time;
    classes_by_time.reserve(kernel_classes.size());
    for (const auto& [id, kernel_class] : kernel_classes) {
      const auto time = kernel_ns_by_class.find(id);
      classes_by_time.emplace_back(time == kernel_ns_by_class.end() ? 0 : time->second, id);
    }
    const auto last_named_class = classes_by_time.begin() + static_cast<std::ptrdiff_t>(kMaxKernelClassRows);
    std::ranges::nth_element(classes_by_time, last_named_class, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    for (auto grouped_class = last_named_class; grouped_class != classes_by_time.end(); ++grouped_class) {
      const KernelKind kind = kernel_classes[grouped_class->second].kind;
      kernel_classes[grouped_class->second] = {grouped_class->second, kind, std::string(kOtherKernelsName), {}, {}};
    }
    grouped_class_count = kernel_classes.size() - kMaxKernelClassRows;
  }
  kernel_ns_by_class.clear();
}

void ActivitySums::add(std::uint32_t process, const Activity& activity) {
  ProcessActivity& names = processes_[process];
  for (const Scope& scope : activity.scopes) {
    names.scopes.add(scope);
    names.has_training = names.has_training || (scope.kind == ScopeKind::mode && scope.name == kTrainModeScopeName);
  }
  for (const KernelClass& kernel_class : activity.classes)
    names.kernel_classes.insert_or_assign(kernel_class.id, kernel_class);
  for (const KernelQueue& queue : activity.queues) names.kernel_queues.insert_or_assign(queue.id, queue);
  double cpu_s = 0;
  for (const ScopeTally& tally : activity.scope_tallies) cpu_s += seconds(tally.cpu_ns + tally.helper_threads_cpu_ns);
  captured_cpu_s_.add(activity.begin_ns, activity.end_ns, cpu_s);
  const bool is_lost =
      !activity.kernel_tallies.empty() && activity.kernel_tallies.front().class_id == kLostKernelClassId;
  std::map<std::pair<std::uint32_t, bool>, double> busy_s;
  for (const KernelTally& tally : activity.kernel_tallies) {
    const bool is_not_extrapolated = names.scopes.is_one_time(tally.scope) || tally.class_id == kLostKernelClassId;
    busy_s[{tally.queue, is_not_extrapolated}] += seconds(tally.time_ns);
    names.kernel_ns_by_class[tally.class_id] += tally.time_ns;
  }
  for (const auto& [key, time_s] : busy_s) {
    busy_intervals_.push_back({process, key.first, key.second, {activity.begin_ns, activity.end_ns}, time_s, is_lost});
  }
  std::map<std::pair<std::uint32_t, bool>, double> wait_s;
  for (const WaitTally& wait : activity.waits)
    wait_s[{wait.queue, names.scopes.is_one_time(wait.scope)}] += seconds(wait.time_ns);
  for (const auto& [key, time_s] : wait_s)
    wait_intervals_.push_back({process, key.first, key.second, {activity.begin_ns, activity.end_ns}, time_s});
  if (is_idle_gap(activity)) idle_gaps_.push_back(wait_intervals_.back());
  for (const StepRecord& step : activity.steps) {
    names.steps.add(step);
    if (!names.steps_span) names.steps_span = TimeSpan{step.begin_ns, step.end_ns};
    if (step.begin_ns > names.steps_span->end_ns)
      names.gaps_between_steps.push_back({names.steps_span->end_ns, step.begin_ns});
    names.steps_span->end_ns = std::max(names.steps_span->end_ns, step.end_ns);
  }
  has_activity_ =
      has_activity_ || !activity.scope_tallies.empty() || !activity.kernel_tallies.empty() || !activity.waits.empty();
}

void ActivitySums::add_activity_outside_span(std::uint32_t process, const Activity& activity) {
  for (const KernelTally& tally : activity.kernel_tallies) {
    TimeSpan& work_span = gpu_work_spans_outside_.try_emplace({process, tally.queue}, kEmptySpan).first->second;
    extend_span(work_span, {activity.begin_ns, activity.end_ns});
  }
  has_activity_ = has_activity_ || !activity.kernel_tallies.empty();
}

void ActivitySums::finish() {
  captured_cpu_s_.finish();
  std::set<std::string, std::less<>> ambiguous_models;
  for (auto& [process, names] : processes_) ambiguous_models.merge(std::set(names.scopes.find_ambiguous_models()));
  for (auto& [process, names] : processes_) {
    names.scopes.add_ambiguous_models(ambiguous_models);
    names.group_rare_kernel_classes();
  }
  for (const auto& [key, work_span] : gpu_work_spans_outside_) {
    const std::string device = processes_[key.first].device_of_queue(key.second);
    gpu_busy_s_.try_emplace(device, span_, cell_count_for_span(span_));
    gpu_kernel_intervals_[device];
    extend_span(gpu_work_spans_.try_emplace(device, kEmptySpan).first->second, work_span);
  }
  for (const DeviceInterval& gap : idle_gaps_)
    processes_[gap.process].idle_gaps[device_of_interval(gap)].push_back(gap.span);
  for (auto& [process, names] : processes_) {
    for (auto& [device, gaps] : names.idle_gaps) std::ranges::sort(gaps, {}, &TimeSpan::begin_ns);
  }
  for (const DeviceInterval& busy : busy_intervals_) add_busy_interval(busy);
  for (auto& [device, slices] : gpu_kernel_intervals_) {
    std::ranges::sort(slices, {}, &TimeSpan::begin_ns);
    TimeSpan& work_span = gpu_work_spans_.try_emplace(device, kEmptySpan).first->second;
    for (const TimeSpan slice : slices) extend_span(work_span, slice);
  }
  for (const DeviceInterval& wait : wait_intervals_) add_wait_interval(wait);
  for (auto* curves : {&gpu_busy_s_, &gpu_wait_s_}) {
    for (auto& [device, curve] : *curves) curve.finish();
  }
  busy_intervals_.clear();
  wait_intervals_.clear();
  idle_gaps_.clear();
}

std::string ActivitySums::device_of_interval(const DeviceInterval& interval) {
  return processes_[interval.process].device_of_queue(interval.queue);
}

TimeCurve& ActivitySums::find_or_add_device_curve(std::map<std::string, TimeCurve>& curves,
                                                  const std::string& device) const {
  return curves.try_emplace(device, span_, cell_count_for_span(span_)).first->second;
}

void ActivitySums::add_busy_interval(const DeviceInterval& busy) {
  const std::string device = device_of_interval(busy);
  const ProcessActivity& names = processes_[busy.process];
  const Extrapolation extrapolation = names.extrapolate(busy.span, busy.is_not_extrapolated, 0);
  // Joulemap up to 0.1.0 recorded lost kernels as a gap as well.
  const std::span<const TimeSpan> gaps = busy.is_lost ? std::span<const TimeSpan>() : names.idle_gaps_of(device);
  for_each_span_outside_gaps(gaps, extrapolation.span, [&](TimeSpan part, double share) {
    find_or_add_device_curve(gpu_busy_s_, device)
        .add(part.begin_ns, part.end_ns, share * busy.time_s * extrapolation.kernel_weight);
    gpu_kernel_intervals_[device].push_back(part);
  });
}

Extrapolation ActivitySums::extrapolate_wait(const ProcessActivity& process, const std::string& device, TimeSpan wait,
                                             bool is_one_time) const {
  const Extrapolation extrapolation = process.extrapolate(wait, is_one_time, 0);
  const auto intervals = gpu_kernel_intervals_.find(device);
  if (intervals == gpu_kernel_intervals_.end()) return extrapolation;
  const TimeSpan span = extrapolation.span;
  const auto following = std::ranges::upper_bound(intervals->second, span.begin_ns, {}, &TimeSpan::begin_ns);
  if (following == intervals->second.begin() || std::prev(following)->end_ns < span.end_ns) return extrapolation;
  return {*std::prev(following), extrapolation.kernel_weight};
}

void ActivitySums::add_wait_interval(const DeviceInterval& wait) {
  const std::string device = device_of_interval(wait);
  const Extrapolation extrapolation =
      extrapolate_wait(processes_[wait.process], device, wait.span, wait.is_not_extrapolated);
  find_or_add_device_curve(gpu_wait_s_, device)
      .add(extrapolation.span.begin_ns, extrapolation.span.end_ns, wait.time_s * extrapolation.kernel_weight);
}

}  // namespace joulemap::attribution

// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/gpu_work.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "attribution/gpu/lost_kernels.h"
#include "base/clock.h"

namespace joulemap::attribution {
namespace {

// Maximum number of classes with a column of their own: enough for a network, few enough for a quick fit. Classes with
// a smaller fraction of time carry too little information.
constexpr std::size_t kMostClasses = 60;
constexpr double kLeastShare = 0.002;
// Sums count records when they are delivered, a little after the kernels ran: this fraction of a stretch counts as
// complete.
constexpr double kWhole = 0.98;
constexpr double kWholeStretch = 0.7;
// Sample size per class for the usual duration.
constexpr std::uint64_t kSampledLengths = 2000;

KernelCode code_in(const ProcessNames& names, std::uint32_t class_id) {
  const auto known = names.classes.find(class_id);
  return known == names.classes.end() ? KernelCode() : code_of(known->second);
}

// The classes with the most time get a column each, the others one for each kind.
std::map<KernelCode, std::uint16_t> columns_for(const std::map<KernelCode, std::int64_t>& times) {
  std::vector<std::pair<std::int64_t, KernelCode>> ranked;
  double all_ns = 0;
  for (const auto& [code, time_ns] : times) {
    ranked.emplace_back(time_ns, code);
    all_ns += static_cast<double>(time_ns);
  }
  std::sort(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  std::map<KernelCode, std::uint16_t> columns;
  std::map<KernelKind, std::uint16_t> rest;
  std::uint16_t next = 0;
  for (const auto& [time_ns, code] : ranked) {
    if (next < kMostClasses && static_cast<double>(time_ns) >= kLeastShare * all_ns) {
      columns.emplace(code, next++);
      continue;
    }
    const auto [column, is_new] = rest.try_emplace(code.kind, next);
    if (is_new) ++next;
    columns.emplace(code, column->second);
  }
  return columns;
}

}  // namespace

std::uint32_t GpuWork::line_of(std::uint32_t process, std::uint32_t queue, std::uint32_t class_id, bool probes) {
  const auto [line, is_new] =
      lines_.try_emplace(Line{process, queue, class_id, probes}, static_cast<std::uint32_t>(lines_.size()));
  if (is_new) {
    line_ns_.push_back(0);
    line_count_.push_back(0);
  }
  return line->second;
}

void GpuWork::add(std::uint32_t process, const Activity& activity, const ScopePaths& scopes) {
  for (const KernelTally& tally : activity.kernel_tallies) {
    const std::int64_t begin_ns = std::max(activity.begin_ns, span_.begin_ns);
    const std::int64_t end_ns = std::min(activity.end_ns, span_.end_ns);
    if (end_ns <= begin_ns || tally.time_ns <= 0) continue;
    const double inside = seconds(end_ns - begin_ns) / seconds(activity.end_ns - activity.begin_ns);
    const auto time_ns = static_cast<std::int64_t>(inside * static_cast<double>(tally.time_ns));
    const std::uint32_t line = line_of(process, tally.queue, tally.class_id, scopes.probes(tally.scope));
    line_ns_[line] += time_ns;
    line_count_[line] += tally.count;
    const double mean_ns =
        static_cast<double>(tally.time_ns) / static_cast<double>(std::max<std::uint64_t>(tally.count, 1));
    sums_.push_back({begin_ns, end_ns, time_ns, line, static_cast<float>(mean_ns)});
  }
  std::uint32_t line = 0;
  const Kernel* last = nullptr;
  for (const Kernel& kernel : activity.kernels) {
    const std::int64_t start_ns = std::max(kernel.start_ns, span_.begin_ns);
    const std::int64_t end_ns = std::min(kernel.end_ns, span_.end_ns);
    if (end_ns <= start_ns) continue;
    const bool same = last != nullptr && last->queue == kernel.queue && last->class_id == kernel.class_id;
    // Only its class matters: single kernels never extrapolate.
    if (!same) line = line_of(process, kernel.queue, kernel.class_id, false);
    last = &kernel;
    const std::int64_t most_ns = std::numeric_limits<std::uint32_t>::max();
    kernels_.push_back({start_ns, static_cast<std::uint32_t>(std::min(end_ns - start_ns, most_ns)), line});
  }
}

std::vector<GpuWork::Where> GpuWork::scope_lines(const std::map<std::uint32_t, ProcessNames>& names,
                                                 std::map<std::string, DeviceWork>& devices) const {
  std::map<std::string, std::map<KernelCode, std::int64_t>> times;
  for (const auto& [line, index] : lines_) {
    const auto process = names.find(line.process);
    if (process == names.end()) continue;
    const std::string device = process->second.device_of(line.queue);
    times[device][code_in(process->second, line.class_id)] += line_ns_[index];
  }
  for (const auto& [device, stretches] : others_) times.try_emplace(device);
  std::map<std::string, std::map<KernelCode, std::uint16_t>> columns;
  for (const auto& [device, of_device] : times) {
    columns[device] = columns_for(of_device);
    std::size_t count = 0;
    for (const auto& [code, column] : columns[device]) count = std::max<std::size_t>(count, column + 1U);
    std::optional<std::uint16_t> others;
    if (others_.contains(device)) others = static_cast<std::uint16_t>(count++);
    devices.emplace(
        device, DeviceWork{KernelTimeline(count), {}, {}, std::vector<std::vector<ObservedKernels>>(count), others});
  }
  std::vector<Where> where(lines_.size());
  std::map<std::string, std::map<KernelCode, ObservedKernels>> seen;
  for (const auto& [line, index] : lines_) {
    const auto process = names.find(line.process);
    if (process == names.end()) continue;
    const std::string device = process->second.device_of(line.queue);
    DeviceWork& work = devices.at(device);
    const std::uint16_t column = columns[device].at(code_in(process->second, line.class_id));
    work.column_of[{line.process, line.class_id}] = column;
    where[index] = {&work, column, &process->second, line.probes, line.class_id, 0};
    const auto known = process->second.classes.find(line.class_id);
    if (known == process->second.classes.end() || line.class_id == kLostClass) continue;
    if (known->second.name == kOtherKernels) continue;  // a mixture of classes, which no power describes
    const ObservedKernels some = seen_kernels(known->second, seconds(line_ns_[index]), line_count_[index]);
    const auto [same, is_new] = seen[device].try_emplace(some.code, some);
    if (!is_new) same->second.add(some);
  }
  for (const auto& [device, of_device] : seen) {
    for (const auto& [code, some] : of_device) devices.at(device).kernels[columns[device].at(code)].push_back(some);
  }
  return where;
}

// The distribution within a stretch is unknown. The command's own kernels in it remain known exactly.
void GpuWork::place_others(std::map<std::string, DeviceWork>& devices) const {
  for (const auto& [device, stretches] : others_) {
    DeviceWork& work = devices.at(device);
    for (const BusyStretch& some : stretches) {
      work.stretches.push_back({some.begin_ns, some.end_ns, *work.others, some.busy_s});
      work.timeline.add_sum(some.begin_ns, some.end_ns, *work.others, some.busy_s);
    }
  }
}

// Kernels of a class take as long in every queue, in the run or in probing.
void GpuWork::find_usual_lengths(std::vector<Where>& where) const {
  std::vector<std::uint64_t> counts(where.size());
  for (const Kept& kernel : kernels_) ++counts[kernel.line];
  std::vector<std::uint64_t> seen(where.size());
  std::vector<std::vector<std::uint32_t>> lengths_ns(where.size());
  for (const Kept& kernel : kernels_) {
    const std::uint64_t every = counts[kernel.line] / kSampledLengths + 1;
    if (seen[kernel.line]++ % every == 0) lengths_ns[kernel.line].push_back(kernel.length_ns);
  }
  std::map<std::tuple<const DeviceWork*, std::uint32_t, std::uint32_t>, std::uint64_t> most;  // of the largest line
  for (const auto& [line, index] : lines_) {
    if (where[index].device == nullptr || counts[index] == 0) continue;
    std::uint64_t& so_far = most[{where[index].device, line.process, line.class_id}];
    if (counts[index] <= so_far) continue;
    so_far = counts[index];
    where[index].device->usual_ns[{line.process, line.class_id}] = usual_length_ns(std::move(lengths_ns[index]));
  }
  for (const auto& [line, index] : lines_) {
    if (where[index].device == nullptr) continue;
    const auto usual = where[index].device->usual_ns.find({line.process, line.class_id});
    if (usual != where[index].device->usual_ns.end()) where[index].usual_ns = usual->second;
  }
}

Extrapolation GpuWork::Where::extrapolation_of(const Sum& sum) const {
  const TimeSpan told{sum.begin_ns, sum.end_ns};
  return names == nullptr ? Extrapolation{told, 1} : names->extrapolation_of(told, probes, class_id);
}

// For each sum: true if the kernels that it counts were also recorded singly.
std::vector<bool> GpuWork::detailed_stretches(const std::vector<Where>& where) const {
  std::vector<bool> detailed(sums_.size(), false);
  double kept_s = 0;
  double told_s = 0;
  for (const Kept& kernel : kernels_) kept_s += seconds(kernel.length_ns);
  std::map<std::pair<std::int64_t, std::int64_t>, double> stretches;
  std::set<std::pair<std::int64_t, std::int64_t>> scaled;  // sums that extrapolate beyond themselves
  for (const Sum& sum : sums_) {
    told_s += seconds(sum.time_ns);
    stretches[{sum.begin_ns, sum.end_ns}] += seconds(sum.time_ns);
    if (where[sum.line].extrapolation_of(sum).weight != 1) scaled.emplace(sum.begin_ns, sum.end_ns);
  }
  if (scaled.empty() && kept_s >= kWhole * told_s) return std::vector<bool>(sums_.size(), true);
  TimeCurve kept(span_, cells_for(span_));
  for (const Kept& kernel : kernels_) {
    kept.add(kernel.start_ns, kernel.start_ns + kernel.length_ns, seconds(kernel.length_ns));
  }
  kept.finish();
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    if (scaled.contains({sums_[i].begin_ns, sums_[i].end_ns})) continue;
    const double here_s = kept.between(sums_[i].begin_ns, sums_[i].end_ns);
    detailed[i] = here_s >= kWholeStretch * stretches[{sums_[i].begin_ns, sums_[i].end_ns}];
  }
  return detailed;
}

std::map<std::string, DeviceWork> GpuWork::finish(const std::map<std::uint32_t, ProcessNames>& names) {
  std::map<std::string, DeviceWork> devices;
  std::vector<Where> where = scope_lines(names, devices);
  find_usual_lengths(where);
  const std::vector<bool> detailed = detailed_stretches(where);
  std::set<std::pair<std::int64_t, std::int64_t>> coarse;  // by end: where sums represent kernels
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const Sum& sum = sums_[i];
    const Where& at = where[sum.line];
    if (at.device == nullptr) continue;
    const Extrapolation all = at.extrapolation_of(sum);
    const double busy_s = seconds(sum.time_ns) * all.weight;
    at.device->stretches.push_back(
        {all.span.begin_ns, all.span.end_ns, at.column, busy_s, slowdown_of(sum.mean_ns, at.usual_ns)});
    if (detailed[i]) continue;
    at.device->timeline.add_sum(all.span.begin_ns, all.span.end_ns, at.column, busy_s);
    coarse.emplace(all.span.end_ns, all.span.begin_ns);
  }
  for (const Kept& kernel : kernels_) {
    const Where& at = where[kernel.line];
    const auto stretch = coarse.upper_bound({kernel.start_ns, std::numeric_limits<std::int64_t>::max()});
    const bool is_in_sum = stretch != coarse.end() && stretch->second <= kernel.start_ns;
    if (at.device == nullptr || is_in_sum) continue;
    at.device->timeline.add_kernel(kernel.start_ns, kernel.start_ns + kernel.length_ns, at.column,
                                   slowdown_of(kernel.length_ns, at.usual_ns));
  }
  place_others(devices);
  kernels_ = {};
  sums_ = {};
  for (auto& [device, work] : devices) work.timeline.finish();
  return devices;
}

}  // namespace joulemap::attribution

// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/gpu_work.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "attribution/gpu/idle_gaps.h"
#include "attribution/gpu/lost_kernels.h"
#include "base/clock.h"
#include "recording/kernel_power_library.h"

namespace joulemap::attribution {
namespace {

// Maximum number of classes with a column of their own: enough for a network, few enough for a quick fit. Classes with
// a smaller fraction of time carry too little information.
constexpr std::size_t kMaxClassColumns = 60;
constexpr double kMinClassTimeFraction = 0.002;
// Single kernels count as complete if their time reaches this fraction of the sums: of the whole recording, or of one
// interval. Not all of it: a sum counts a kernel when its record is delivered, a little after the kernel ran.
constexpr double kMinCompleteTraceFraction = 0.98;
constexpr double kMinTracedFractionOfSlice = 0.7;
// Number of durations per series from which full_speed_duration_ns() is computed.
constexpr std::uint64_t kSampledDurationsPerSeries = 2000;

KernelPowerKey kernel_power_key_of_class(const ProcessActivity& names, std::uint32_t class_id) {
  const auto kernel_class = names.kernel_classes.find(class_id);
  return kernel_class == names.kernel_classes.end() ? KernelPowerKey() : recording::kernel_key_of(kernel_class->second);
}

// The classes with the most time get a column each, the others one for each kind.
std::map<KernelPowerKey, std::uint16_t> assign_class_columns(const std::map<KernelPowerKey, std::int64_t>& times) {
  std::vector<std::pair<std::int64_t, KernelPowerKey>> kernel_keys_by_time;
  double total_kernel_ns = 0;
  for (const auto& [kernel_key, time_ns] : times) {
    kernel_keys_by_time.emplace_back(time_ns, kernel_key);
    total_kernel_ns += static_cast<double>(time_ns);
  }
  std::sort(kernel_keys_by_time.begin(), kernel_keys_by_time.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  std::map<KernelPowerKey, std::uint16_t> columns;
  std::map<KernelKind, std::uint16_t> column_by_kind;
  std::uint16_t next_column = 0;
  for (const auto& [time_ns, kernel_key] : kernel_keys_by_time) {
    if (next_column < kMaxClassColumns && static_cast<double>(time_ns) >= kMinClassTimeFraction * total_kernel_ns) {
      columns.emplace(kernel_key, next_column++);
      continue;
    }
    const auto [column, is_new] = column_by_kind.try_emplace(kernel_key.kind, next_column);
    if (is_new) ++next_column;
    columns.emplace(kernel_key, column->second);
  }
  return columns;
}

}  // namespace

std::uint32_t GpuWorkCollector::find_or_add_series(std::uint32_t process, std::uint32_t queue, std::uint32_t class_id,
                                                   bool is_one_time) {
  const auto [series, is_new] = series_index_.try_emplace(KernelSeries{process, queue, class_id, is_one_time},
                                                          static_cast<std::uint32_t>(series_index_.size()));
  if (is_new) {
    series_time_ns_.push_back(0);
    series_kernel_count_.push_back(0);
  }
  return series->second;
}

void GpuWorkCollector::add(std::uint32_t process, const Activity& activity, const ScopePaths& scopes) {
  for (const KernelTally& tally : activity.kernel_tallies) {
    const std::int64_t begin_ns = std::max(activity.begin_ns, span_.begin_ns);
    const std::int64_t end_ns = std::min(activity.end_ns, span_.end_ns);
    if (end_ns <= begin_ns || tally.time_ns <= 0) continue;
    const double inside_fraction = seconds(end_ns - begin_ns) / seconds(activity.end_ns - activity.begin_ns);
    const auto time_ns = static_cast<std::int64_t>(inside_fraction * static_cast<double>(tally.time_ns));
    const std::uint32_t series =
        find_or_add_series(process, tally.queue, tally.class_id, scopes.is_one_time(tally.scope));
    series_time_ns_[series] += time_ns;
    series_kernel_count_[series] += tally.count;
    const double mean_ns =
        static_cast<double>(tally.time_ns) / static_cast<double>(std::max<std::uint64_t>(tally.count, 1));
    sums_.push_back({begin_ns, end_ns, time_ns, series, static_cast<float>(mean_ns)});
  }
  std::uint32_t series = 0;
  const Kernel* previous_kernel = nullptr;
  for (const Kernel& kernel : activity.kernels) {
    const std::int64_t start_ns = std::max(kernel.start_ns, span_.begin_ns);
    const std::int64_t end_ns = std::min(kernel.end_ns, span_.end_ns);
    if (end_ns <= start_ns) continue;
    const bool is_same_series = previous_kernel != nullptr && previous_kernel->queue == kernel.queue &&
                                previous_kernel->class_id == kernel.class_id;
    // Whether the scope runs once does not matter here: single kernels never extrapolate.
    if (!is_same_series) series = find_or_add_series(process, kernel.queue, kernel.class_id, false);
    previous_kernel = &kernel;
    const std::int64_t max_length_ns = std::numeric_limits<std::uint32_t>::max();
    kernels_.push_back({start_ns, static_cast<std::uint32_t>(std::min(end_ns - start_ns, max_length_ns)), series});
  }
}

std::vector<GpuWorkCollector::SeriesColumn> GpuWorkCollector::assign_series_columns(
    const std::map<std::uint32_t, ProcessActivity>& names, std::map<std::string, DeviceWork>& devices) const {
  std::map<std::string, std::map<KernelPowerKey, std::int64_t>> times;
  for (const auto& [series, index] : series_index_) {
    const auto process = names.find(series.process);
    if (process == names.end()) continue;
    const std::string device = process->second.device_of_queue(series.queue);
    times[device][kernel_power_key_of_class(process->second, series.class_id)] += series_time_ns_[index];
  }
  for (const auto& [device, slices] : co_tenant_slices_) times.try_emplace(device);
  std::map<std::string, std::map<KernelPowerKey, std::uint16_t>> columns;
  for (const auto& [device, device_times_ns] : times) {
    columns[device] = assign_class_columns(device_times_ns);
    std::size_t count = 0;
    for (const auto& [kernel_key, column] : columns[device]) count = std::max<std::size_t>(count, column + 1U);
    std::optional<std::uint16_t> co_tenant_column;
    if (co_tenant_slices_.contains(device)) co_tenant_column = static_cast<std::uint16_t>(count++);
    devices.emplace(
        device,
        DeviceWork{KernelTimeline(count), {}, {}, std::vector<std::vector<ObservedKernels>>(count), co_tenant_column});
  }
  std::vector<SeriesColumn> series_columns(series_index_.size());
  std::map<std::string, std::map<KernelPowerKey, ObservedKernels>> kernels_by_device;
  for (const auto& [series, index] : series_index_) {
    const auto process = names.find(series.process);
    if (process == names.end()) continue;
    const std::string device = process->second.device_of_queue(series.queue);
    DeviceWork& work = devices.at(device);
    const std::uint16_t column = columns[device].at(kernel_power_key_of_class(process->second, series.class_id));
    work.class_columns[{series.process, series.class_id}] = column;
    series_columns[index] = {&work, column, &process->second, series.is_one_time, series.class_id, 0, {}};
    if (series.class_id != kLostKernelClassId) series_columns[index].idle_gaps = process->second.idle_gaps_of(device);
    const auto kernel_class = process->second.kernel_classes.find(series.class_id);
    if (kernel_class == process->second.kernel_classes.end() || series.class_id == kLostKernelClassId) continue;
    if (kernel_class->second.name == kOtherKernelsName) continue;  // a mixture of classes, which no power describes
    const ObservedKernels observed = recording::observed_kernels_of_class(
        kernel_class->second, seconds(series_time_ns_[index]), series_kernel_count_[index]);
    const auto [kernels_slot, is_new] = kernels_by_device[device].try_emplace(observed.kernel_key, observed);
    if (!is_new) recording::add_observed_kernels(kernels_slot->second, observed);
  }
  for (const auto& [device, device_kernels] : kernels_by_device) {
    for (const auto& [kernel_key, class_kernels] : device_kernels)
      devices.at(device).kernels_by_column[columns[device].at(kernel_key)].push_back(class_kernels);
  }
  return series_columns;
}

// Adds co-tenants as sums: their single kernels are unknown. The command's own kernels in that time stay single.
void GpuWorkCollector::add_co_tenant_slices(std::map<std::string, DeviceWork>& devices) const {
  for (const auto& [device, slices] : co_tenant_slices_) {
    DeviceWork& work = devices.at(device);
    for (const BusySlice& slice : slices) {
      work.slices.push_back({slice.begin_ns, slice.end_ns, *work.co_tenant_column, slice.busy_s});
      work.timeline.add_busy_sum(slice.begin_ns, slice.end_ns, *work.co_tenant_column, slice.busy_s);
    }
  }
}

// Takes the duration at full speed of a class from its series with the most kernels: kernels of a class take as long in
// every queue, in the run or in probing.
void GpuWorkCollector::find_full_speed_durations(std::vector<SeriesColumn>& series_columns) const {
  std::vector<std::uint64_t> counts(series_columns.size());
  for (const StoredKernel& kernel : kernels_) ++counts[kernel.series];
  std::vector<std::uint64_t> visited_counts(series_columns.size());
  std::vector<std::vector<std::uint32_t>> lengths_ns(series_columns.size());
  for (const StoredKernel& kernel : kernels_) {
    const std::uint64_t sampling_stride = counts[kernel.series] / kSampledDurationsPerSeries + 1;
    if (visited_counts[kernel.series]++ % sampling_stride == 0) lengths_ns[kernel.series].push_back(kernel.length_ns);
  }
  std::map<std::tuple<const DeviceWork*, std::uint32_t, std::uint32_t>, std::uint64_t>
      largest_series_counts;  // of the largest series
  for (const auto& [series, index] : series_index_) {
    if (series_columns[index].device == nullptr || counts[index] == 0) continue;
    std::uint64_t& max_count = largest_series_counts[{series_columns[index].device, series.process, series.class_id}];
    if (counts[index] <= max_count) continue;
    max_count = counts[index];
    series_columns[index].device->full_speed_ns[{series.process, series.class_id}] =
        full_speed_duration_ns(std::move(lengths_ns[index]));
  }
  for (const auto& [series, index] : series_index_) {
    if (series_columns[index].device == nullptr) continue;
    const auto full_speed_duration =
        series_columns[index].device->full_speed_ns.find({series.process, series.class_id});
    if (full_speed_duration != series_columns[index].device->full_speed_ns.end())
      series_columns[index].full_speed_ns = full_speed_duration->second;
  }
}

Extrapolation GpuWorkCollector::SeriesColumn::compute_extrapolation(const KernelTimeSum& sum) const {
  const TimeSpan recorded_span{sum.begin_ns, sum.end_ns};
  return process_names == nullptr ? Extrapolation{recorded_span, 1}
                                  : process_names->extrapolate(recorded_span, is_one_time, class_id);
}

// For each sum: true if the kernels that it counts were also recorded singly.
std::vector<bool> GpuWorkCollector::find_sums_with_recorded_kernels(
    const std::vector<SeriesColumn>& series_columns) const {
  std::vector<bool> has_recorded_kernels(sums_.size(), false);
  double stored_kernel_s = 0;
  double summed_s = 0;
  for (const StoredKernel& kernel : kernels_) stored_kernel_s += seconds(kernel.length_ns);
  std::map<std::pair<std::int64_t, std::int64_t>, double> slices;
  std::set<std::pair<std::int64_t, std::int64_t>>
      extrapolated_intervals;  // intervals whose sums extrapolate to untraced steps
  for (const KernelTimeSum& sum : sums_) {
    summed_s += seconds(sum.time_ns);
    slices[{sum.begin_ns, sum.end_ns}] += seconds(sum.time_ns);
    if (series_columns[sum.series].compute_extrapolation(sum).kernel_weight != 1)
      extrapolated_intervals.emplace(sum.begin_ns, sum.end_ns);
  }
  if (extrapolated_intervals.empty() && stored_kernel_s >= kMinCompleteTraceFraction * summed_s)
    return std::vector<bool>(sums_.size(), true);
  TimeCurve stored_kernel_time(span_, cell_count_for_span(span_));
  for (const StoredKernel& kernel : kernels_) {
    stored_kernel_time.add(kernel.start_ns, kernel.start_ns + kernel.length_ns, seconds(kernel.length_ns));
  }
  stored_kernel_time.finish();
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    if (extrapolated_intervals.contains({sums_[i].begin_ns, sums_[i].end_ns})) continue;
    const double recorded_kernel_s = stored_kernel_time.amount_between(sums_[i].begin_ns, sums_[i].end_ns);
    has_recorded_kernels[i] =
        recorded_kernel_s >= kMinTracedFractionOfSlice * slices[{sums_[i].begin_ns, sums_[i].end_ns}];
  }
  return has_recorded_kernels;
}

std::map<std::string, DeviceWork> GpuWorkCollector::finish(const std::map<std::uint32_t, ProcessActivity>& names) {
  std::map<std::string, DeviceWork> devices;
  std::vector<SeriesColumn> series_columns = assign_series_columns(names, devices);
  find_full_speed_durations(series_columns);
  const std::vector<bool> has_recorded_kernels = find_sums_with_recorded_kernels(series_columns);
  std::set<std::pair<std::int64_t, std::int64_t>>
      summed_intervals;  // (end, begin) of intervals where sums replace kernels
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const KernelTimeSum& sum = sums_[i];
    const SeriesColumn& series_column = series_columns[sum.series];
    if (series_column.device == nullptr) continue;
    const Extrapolation extrapolation = series_column.compute_extrapolation(sum);
    const double busy_s = seconds(sum.time_ns) * extrapolation.kernel_weight;
    const double slowdown = slowdown_factor(sum.mean_ns, series_column.full_speed_ns);
    for_each_span_outside_gaps(series_column.idle_gaps, extrapolation.span, [&](TimeSpan part, double share) {
      series_column.device->slices.push_back(
          {part.begin_ns, part.end_ns, series_column.column, share * busy_s, slowdown});
      if (has_recorded_kernels[i]) return;
      series_column.device->timeline.add_busy_sum(part.begin_ns, part.end_ns, series_column.column, share * busy_s);
      summed_intervals.emplace(part.end_ns, part.begin_ns);
    });
  }
  for (const StoredKernel& kernel : kernels_) {
    const SeriesColumn& series_column = series_columns[kernel.series];
    const auto slice = summed_intervals.upper_bound({kernel.start_ns, std::numeric_limits<std::int64_t>::max()});
    const bool is_covered_by_sum = slice != summed_intervals.end() && slice->second <= kernel.start_ns;
    if (series_column.device == nullptr || is_covered_by_sum) continue;
    series_column.device->timeline.add_kernel(kernel.start_ns, kernel.start_ns + kernel.length_ns, series_column.column,
                                              slowdown_factor(kernel.length_ns, series_column.full_speed_ns));
  }
  add_co_tenant_slices(devices);
  kernels_ = {};
  sums_ = {};
  for (auto& [device, device_work] : devices) device_work.timeline.finish();
  return devices;
}

}  // namespace joulemap::attribution

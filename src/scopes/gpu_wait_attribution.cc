// SPDX-License-Identifier: Apache-2.0
#include "scopes/gpu_wait_attribution.h"

#include <algorithm>
#include <utility>

namespace joulemap {
namespace {

// A gap of at least this length gets an interval of its own, so that its energy is that of its own time.
constexpr std::int64_t kMinLongGap_ns = 20'000'000;
// Limit of stored edges (16 MB), for programs that enter scopes for minutes without launching a kernel. Beyond it, the
// older half is dropped.
constexpr std::size_t kMaxStoredScopeChanges = 1'000'000;
// Longest period of HostLatenessTracker: some steps of a small network.
constexpr std::int64_t kMaxLatenessPeriod_ns = 100'000'000;
// Limit of long gaps between two calls of take_wait_activities(). Further ones are summed with the short gaps.
constexpr std::size_t kMaxStoredLongGaps = 100'000;
// Assumes that no kernel runs for longer: a device without a kernel record for this time was idle, not inside a kernel
// whose record is still to come.
constexpr std::int64_t kMaxKernelDuration_ns = 10'000'000'000;

bool can_charge_gaps(WaitTracing tracing) {
  return tracing == WaitTracing::on || tracing == WaitTracing::separate_step;
}

void append_wait_activity(const std::map<std::tuple<std::uint32_t, std::uint32_t, WaitKind>, WaitTally>& tallies,
                          TimeSpan span, std::vector<Activity>& activities) {
  if (tallies.empty()) return;
  Activity& activity = activities.emplace_back();
  activity.begin_ns = span.begin_ns;
  activity.end_ns = span.end_ns;
  for (const auto& [key, tally] : tallies) activity.waits.push_back(tally);
}

}  // namespace

void GpuWaitAttribution::add(std::span<const HostScopeChange> edges) {
  const auto first_added_offset = static_cast<std::ptrdiff_t>(host_scope_changes_.size());
  host_scope_changes_.insert(host_scope_changes_.end(), edges.begin(), edges.end());
  // A thread may have read the clock before the last edges were added, and report its edge only now.
  std::ranges::inplace_merge(host_scope_changes_, host_scope_changes_.begin() + first_added_offset, {},
                             &HostScopeChange::time_ns);
  if (host_scope_changes_.size() <= kMaxStoredScopeChanges) return;
  const std::size_t excess_change_count = host_scope_changes_.size() - kMaxStoredScopeChanges / 2;
  host_scope_changes_.erase(host_scope_changes_.begin(),
                            host_scope_changes_.begin() + static_cast<std::ptrdiff_t>(excess_change_count));
  dropped_scope_change_count_ += excess_change_count;
}

void GpuWaitAttribution::add(const LaunchedKernel& kernel) {
  const auto [device, is_new] = devices_.try_emplace(kernel.device);
  if (is_new) device->second.tracing = tracing_before_changes_;
  device->second.pending_kernels.push_back(kernel);
}

void GpuWaitAttribution::set_tracing(std::int64_t time_ns, WaitTracing tracing, std::int64_t untraced_kernels_end_ns) {
  if (tracing == current_tracing_ && tracing != WaitTracing::separate_step) return;
  current_tracing_ = tracing;
  if (tracing == WaitTracing::separate_step) ++separate_step_count_;
  tracing_changes_.push_back({time_ns, tracing, untraced_kernels_end_ns, separate_step_count_});
}

void GpuWaitAttribution::add_lost_record_span(std::int64_t since_ns, std::int64_t until_ns) {
  if (!lost_record_spans_.empty() && lost_record_spans_.back().begin_ns == since_ns) {
    lost_record_spans_.back().end_ns = until_ns;
  } else {
    lost_record_spans_.push_back({since_ns, until_ns});
  }
}

void GpuWaitAttribution::resolve_idle_gaps(std::int64_t until_ns) {
  for (auto& [ordinal, device] : devices_) {
    resolve_idle_gaps(device, until_ns);
    const std::int64_t idle_until_ns = until_ns - kMaxKernelDuration_ns;
    apply_tracing_changes(device, idle_until_ns);
    if (!can_charge_gaps(device.tracing) || !device.idle_since_ns || *device.idle_since_ns >= idle_until_ns) continue;
    charge_idle_gap(device, idle_until_ns, nullptr);
    device.idle_since_ns = idle_until_ns;
    advance_host_cursor(device, idle_until_ns);
    device.host_lateness.reset_period();
  }
  drop_old_scope_changes(until_ns);
}

void GpuWaitAttribution::finish(std::int64_t end_ns) {
  for (auto& [ordinal, device] : devices_) {
    resolve_idle_gaps(device, INT64_MAX);
    apply_tracing_changes(device, end_ns);
    if (can_charge_gaps(device.tracing) && device.idle_since_ns) charge_idle_gap(device, end_ns, nullptr);
    device.idle_since_ns.reset();
    device.host_cursor.reset();
  }
  host_scope_changes_.clear();
}

// Ends an open gap whenever the mode changes: while kernels are not traced, it is unknown whether the device is idle.
void GpuWaitAttribution::apply_tracing_changes(Device& device, std::int64_t until_ns) {
  for (; device.next_tracing_change < tracing_changes_.size() &&
         tracing_changes_[device.next_tracing_change].time_ns <= until_ns;
       ++device.next_tracing_change) {
    const TracingChange& tracing_change = tracing_changes_[device.next_tracing_change];
    if (can_charge_gaps(device.tracing) && device.idle_since_ns)
      charge_idle_gap(device, tracing_change.time_ns, nullptr);
    collect_lateness_charges(device);
    device.host_lateness.reset_period();
    device.host_cursor.reset();
    if (can_charge_gaps(tracing_change.tracing)) device.host_cursor = host_cursor_at(tracing_change.time_ns);
    const WaitTracing previous_tracing = std::exchange(device.tracing, tracing_change.tracing);
    device.separate_step_number = tracing_change.separate_step_number;
    const bool is_tracing_continuous =
        previous_tracing != WaitTracing::off && tracing_change.tracing != WaitTracing::off;
    if (is_tracing_continuous && device.idle_since_ns && !device.may_run_untraced_kernels) {
      device.idle_since_ns = std::max(*device.idle_since_ns, tracing_change.time_ns);
      continue;
    }
    device.idle_since_ns.reset();
    device.may_run_untraced_kernels = tracing_change.tracing != WaitTracing::off;
    if (device.may_run_untraced_kernels) device.idle_since_ns = tracing_change.untraced_kernels_end_ns;
  }
}

void GpuWaitAttribution::resolve_idle_gaps(Device& device, std::int64_t until_ns) {
  std::vector<LaunchedKernel>& pending = device.pending_kernels;
  const auto first_later_kernel =
      std::partition(pending.begin(), pending.end(), [&](const LaunchedKernel& k) { return k.start_ns < until_ns; });
  std::sort(pending.begin(), first_later_kernel, [](const LaunchedKernel& a, const LaunchedKernel& b) {
    return std::tie(a.start_ns, a.queue) < std::tie(b.start_ns, b.queue);
  });
  for (auto kernel = pending.begin(); kernel != first_later_kernel; ++kernel) {
    apply_tracing_changes(device, kernel->start_ns);
    advance_host_cursor_to_launch(device, *kernel);
    if (can_charge_gaps(device.tracing) && device.idle_since_ns) charge_idle_gap(device, kernel->start_ns, &*kernel);
    if (device.host_cursor && kernel->launch_ns.value_or(INT64_MIN) >= device.host_cursor->processed_from_ns)
      device.host_lateness.add_kernel(kernel->scope, kernel->end_ns - kernel->start_ns);
    if (std::exchange(device.may_run_untraced_kernels, false)) device.idle_since_ns.reset();
    device.idle_since_ns = std::max(device.idle_since_ns.value_or(kernel->end_ns), kernel->end_ns);
    device.last_queue = kernel->queue;
  }
  pending.erase(pending.begin(), first_later_kernel);
}

GpuWaitAttribution::WaitSums& GpuWaitAttribution::select_wait_sums(const Device& device, std::int64_t gap_ns) {
  if (gap_ns >= kMinLongGap_ns && long_gap_sums_.size() < kMaxStoredLongGaps) return long_gap_sums_.emplace_back();
  return device.tracing == WaitTracing::separate_step ? separate_step_sums_[device.separate_step_number]
                                                      : short_gap_sums_;
}

GpuWaitAttribution::HostCursor GpuWaitAttribution::host_cursor_at(std::int64_t time_ns) const {
  const auto next_scope_change = std::ranges::upper_bound(host_scope_changes_, time_ns, {}, &HostScopeChange::time_ns);
  if (next_scope_change == host_scope_changes_.begin())
    return {time_ns, 0, false, time_ns + kMaxLatenessPeriod_ns, time_ns};
  return {time_ns, std::prev(next_scope_change)->scope, std::prev(next_scope_change)->waits_for_gpu,
          time_ns + kMaxLatenessPeriod_ns, time_ns};
}

// Adds the host's time in each scope to HostLatenessTracker. Leaves out time in which the host waits for the GPU, and
// the rest of that scope until the next launch: gaps in that time are charged to the synchronization.
void GpuWaitAttribution::advance_host_cursor(Device& device, std::int64_t until_ns) {
  if (!device.host_cursor || until_ns <= device.host_cursor->time_ns) return;
  HostCursor& host = *device.host_cursor;
  const auto pass = [&](std::int64_t to_ns) {
    if (!host.has_synchronized) device.host_lateness.add_host_time(host.scope, to_ns - host.time_ns);
    host.time_ns = to_ns;
  };
  auto edge = std::ranges::upper_bound(host_scope_changes_, host.time_ns, {}, &HostScopeChange::time_ns);
  for (; edge != host_scope_changes_.end() && edge->time_ns <= until_ns; ++edge) {
    pass(edge->time_ns);
    // A device that is idle already does not make the host wait.
    const bool waits = edge->waits_for_gpu && (!device.idle_since_ns || edge->time_ns < *device.idle_since_ns);
    if (waits) {
      device.host_lateness.reset_period();
      host.last_synchronization_ns = edge->time_ns;
    }
    host.has_synchronized = waits || (host.has_synchronized && edge->scope == host.scope);
    host.scope = edge->scope;
  }
  pass(until_ns);
  if (until_ns < host.period_end_ns) return;
  device.host_lateness.end_period();
  host.period_end_ns = until_ns + kMaxLatenessPeriod_ns;
}

void GpuWaitAttribution::advance_host_cursor_to_launch(Device& device, const LaunchedKernel& kernel) {
  if (!kernel.launch_ns || !can_charge_gaps(device.tracing)) return;
  if (!device.host_cursor) device.host_cursor = host_cursor_at(*kernel.launch_ns);
  advance_host_cursor(device, *kernel.launch_ns);
  // A kernel that was launched before the synchronization does not end it: it waited in the queue.
  if (*kernel.launch_ns > device.host_cursor->last_synchronization_ns) device.host_cursor->has_synchronized = false;
}

void GpuWaitAttribution::charge_idle_gap(Device& device, std::int64_t to_ns, const LaunchedKernel* next_kernel) {
  for (const TimeSpan lost_span : lost_record_spans_) {
    if (lost_span.end_ns <= *device.idle_since_ns || lost_span.begin_ns >= to_ns) continue;
    charge_idle_time(device, lost_span.begin_ns, nullptr);
    device.idle_since_ns = std::min(lost_span.end_ns, to_ns);
    advance_host_cursor(device, *device.idle_since_ns);
    device.host_lateness.reset_period();
  }
  charge_idle_time(device, to_ns, next_kernel);
}

void GpuWaitAttribution::charge_idle_time(Device& device, std::int64_t to_ns, const LaunchedKernel* next_kernel) {
  const std::int64_t from_ns = *device.idle_since_ns;
  if (to_ns <= from_ns) return;
  WaitSums& sums = select_wait_sums(device, to_ns - from_ns);
  sums.span = {std::min(sums.span.begin_ns, from_ns), std::max(sums.span.end_ns, to_ns)};
  const bool is_short_gap = to_ns - from_ns < kMinLongGap_ns;
  const std::uint32_t queue = next_kernel == nullptr ? device.last_queue : next_kernel->queue;
  const std::int64_t launch_ns =
      next_kernel == nullptr ? to_ns : std::clamp(next_kernel->launch_ns.value_or(to_ns), from_ns, to_ns);
  const TimeSpan gap_before_launch{from_ns, launch_ns};
  if (is_short_gap && next_kernel != nullptr && next_kernel->launch_ns) {
    charge_wait_to_late_scopes(device, gap_before_launch, queue, sums);
  } else {
    charge_wait_to_host_scopes(gap_before_launch, queue, sums);
  }
  if (next_kernel != nullptr) charge_wait({launch_ns, to_ns}, queue, next_kernel->scope, WaitKind::host, sums);
  if (is_short_gap) return;
  advance_host_cursor(device, launch_ns);
  device.host_lateness.reset_period();
}

void GpuWaitAttribution::charge_wait_to_late_scopes(Device& device, TimeSpan span, std::uint32_t queue,
                                                    WaitSums& sums) {
  std::int64_t late_ns = 0;
  for_each_host_scope(span, [&](TimeSpan scope_span, std::uint32_t scope, WaitKind kind) {
    if (kind == WaitKind::host) {
      late_ns += scope_span.end_ns - scope_span.begin_ns;
    } else {
      charge_wait(scope_span, queue, scope, kind, sums);
    }
  });
  if (late_ns == 0 || device.host_lateness.add_wait(late_ns)) return;
  for_each_host_scope(span, [&](TimeSpan scope_span, std::uint32_t scope, WaitKind kind) {
    if (kind == WaitKind::host) charge_wait(scope_span, queue, scope, kind, sums);
  });
}

// Moves the charges to the sums of short gaps, whose span already includes these gaps.
void GpuWaitAttribution::collect_lateness_charges(Device& device) {
  const std::vector<HostLatenessTracker::WaitCharge> charges = device.host_lateness.take_wait_charges();
  if (charges.empty()) return;
  WaitSums& sums = select_wait_sums(device, 0);
  for (const HostLatenessTracker::WaitCharge& late : charges)
    charge_wait({0, late.wait_ns}, device.last_queue, late.scope, WaitKind::host, sums);
}

void GpuWaitAttribution::charge_wait_to_host_scopes(TimeSpan span, std::uint32_t queue, WaitSums& sums) {
  for_each_host_scope(span, [&](TimeSpan scope_span, std::uint32_t scope, WaitKind kind) {
    charge_wait(scope_span, queue, scope, kind, sums);
  });
}

// If the host was synchronizing when the span began, the rest of that scope counts as synchronization: the host could
// not launch ahead.
template <class Charge>
void GpuWaitAttribution::for_each_host_scope(TimeSpan span, Charge charge) const {
  if (span.end_ns <= span.begin_ns) return;
  const HostCursor begin = host_cursor_at(span.begin_ns);
  std::int64_t from_ns = span.begin_ns;
  std::uint32_t scope = begin.scope;
  bool has_synchronized = begin.has_synchronized;
  const auto pass = [&](std::int64_t to_ns) {
    charge(TimeSpan{from_ns, to_ns}, scope, has_synchronized ? WaitKind::synchronization : WaitKind::host);
    from_ns = to_ns;
  };
  auto edge = std::ranges::upper_bound(host_scope_changes_, span.begin_ns, {}, &HostScopeChange::time_ns);
  for (; edge != host_scope_changes_.end() && edge->time_ns < span.end_ns; ++edge) {
    if (edge->scope == scope) continue;  // the end of a synchronization
    pass(edge->time_ns);
    scope = edge->scope;
    has_synchronized = false;
  }
  pass(span.end_ns);
}

void GpuWaitAttribution::charge_wait(TimeSpan wait_span, std::uint32_t queue, std::uint32_t scope, WaitKind kind,
                                     WaitSums& sums) {
  if (wait_span.end_ns <= wait_span.begin_ns) return;
  WaitTally& tally = sums.tallies.try_emplace({queue, scope, kind}, WaitTally{queue, scope, kind, 0, 0}).first->second;
  ++tally.count;
  tally.time_ns += wait_span.end_ns - wait_span.begin_ns;
}

// Removes applied toggles, and edges before the earliest open gap except the last one, which gives the scope there.
void GpuWaitAttribution::drop_old_scope_changes(std::int64_t until_ns) {
  std::int64_t earliest_open_ns = until_ns;
  std::size_t applied_change_count = tracing_changes_.size();
  for (const auto& [ordinal, device] : devices_) {
    if (device.idle_since_ns) earliest_open_ns = std::min(earliest_open_ns, *device.idle_since_ns);
    if (device.host_cursor) earliest_open_ns = std::min(earliest_open_ns, device.host_cursor->time_ns);
    for (const LaunchedKernel& kernel : device.pending_kernels)
      earliest_open_ns = std::min(earliest_open_ns, kernel.start_ns);
    applied_change_count = std::min(applied_change_count, device.next_tracing_change);
  }
  std::erase_if(lost_record_spans_, [&](TimeSpan lost_span) { return lost_span.end_ns <= earliest_open_ns; });
  const auto first_needed_change =
      std::ranges::upper_bound(host_scope_changes_, earliest_open_ns, {}, &HostScopeChange::time_ns);
  if (first_needed_change - host_scope_changes_.begin() > 1)
    host_scope_changes_.erase(host_scope_changes_.begin(), std::prev(first_needed_change));
  if (applied_change_count == 0) return;
  tracing_before_changes_ = tracing_changes_[applied_change_count - 1].tracing;
  tracing_changes_.erase(tracing_changes_.begin(),
                         tracing_changes_.begin() + static_cast<std::ptrdiff_t>(applied_change_count));
  for (auto& [ordinal, device] : devices_) device.next_tracing_change -= applied_change_count;
}

void GpuWaitAttribution::take_wait_activities(std::vector<Activity>& activities) {
  for (auto& [ordinal, device] : devices_) collect_lateness_charges(device);
  append_wait_activity(short_gap_sums_.tallies, short_gap_sums_.span, activities);
  for (const WaitSums& gap : long_gap_sums_) append_wait_activity(gap.tallies, gap.span, activities);
  for (const auto& [part, sums] : separate_step_sums_) append_wait_activity(sums.tallies, sums.span, activities);
  short_gap_sums_ = {};
  long_gap_sums_.clear();
  separate_step_sums_.clear();
}

}  // namespace joulemap

// SPDX-License-Identifier: Apache-2.0
#include "scopes/gpu_waiting.h"

#include <algorithm>
#include <utility>

namespace joulemap {
namespace {

// A gap of at least this length gets an interval of its own, so that its energy is that of its own time.
constexpr std::int64_t kLongGap_ns = 20'000'000;
// Limit of stored edges (16 MB), for programs that enter scopes for minutes without launching a kernel. Beyond it, the
// older half is dropped.
constexpr std::size_t kMaxEdges = 1'000'000;
// Longest period of LateScopes: some steps of a small network.
constexpr std::int64_t kLatePeriod_ns = 100'000'000;
// Limit of long gaps between two calls of take(). Further ones are summed with the short gaps.
constexpr std::size_t kMaxLongGaps = 100'000;
// Assumes that no kernel runs for longer: a device without a kernel record for this time was idle, not inside a kernel
// whose record is still to come.
constexpr std::int64_t kMaxKernel_ns = 10'000'000'000;

bool is_charged(WaitTracing tracing) { return tracing == WaitTracing::on || tracing == WaitTracing::apart; }

void append_activity(const std::map<std::tuple<std::uint32_t, std::uint32_t, WaitKind>, WaitTally>& tallies,
                     TimeSpan span, std::vector<Activity>& into) {
  if (tallies.empty()) return;
  Activity& activity = into.emplace_back();
  activity.begin_ns = span.begin_ns;
  activity.end_ns = span.end_ns;
  for (const auto& [key, tally] : tallies) activity.waits.push_back(tally);
}

}  // namespace

void GpuWaiting::add(std::span<const HostEdge> edges) {
  const auto added = static_cast<std::ptrdiff_t>(edges_.size());
  edges_.insert(edges_.end(), edges.begin(), edges.end());
  // A thread may have read the clock before the last edges were added, and report its edge only now.
  std::ranges::inplace_merge(edges_, edges_.begin() + added, {}, &HostEdge::time_ns);
  if (edges_.size() <= kMaxEdges) return;
  const std::size_t excess = edges_.size() - kMaxEdges / 2;
  edges_.erase(edges_.begin(), edges_.begin() + static_cast<std::ptrdiff_t>(excess));
  forgotten_edges_ += excess;
}

void GpuWaiting::add(const LaunchedKernel& kernel) {
  const auto [device, is_new] = devices_.try_emplace(kernel.device);
  if (is_new) device->second.tracing = forgotten_tracing_;
  device->second.pending.push_back(kernel);
}

void GpuWaiting::set_tracing(std::int64_t time_ns, WaitTracing tracing, std::int64_t drained_ns) {
  if (tracing == tracing_ && tracing != WaitTracing::apart) return;
  tracing_ = tracing;
  if (tracing == WaitTracing::apart) ++parts_;
  toggles_.push_back({time_ns, tracing, drained_ns, parts_});
}

void GpuWaiting::add_lost_records(std::int64_t since_ns, std::int64_t until_ns) {
  if (!lost_records_.empty() && lost_records_.back().begin_ns == since_ns) {
    lost_records_.back().end_ns = until_ns;
  } else {
    lost_records_.push_back({since_ns, until_ns});
  }
}

void GpuWaiting::settle(std::int64_t until_ns) {
  for (auto& [ordinal, device] : devices_) {
    settle(device, until_ns);
    const std::int64_t idle_until_ns = until_ns - kMaxKernel_ns;
    apply_toggles(device, idle_until_ns);
    if (!is_charged(device.tracing) || !device.idle_from_ns || *device.idle_from_ns >= idle_until_ns) continue;
    charge_gap(device, idle_until_ns, nullptr);
    device.idle_from_ns = idle_until_ns;
    follow_host(device, idle_until_ns);
    device.late_scopes.begin_anew();
  }
  forget(until_ns);
}

void GpuWaiting::finish(std::int64_t end_ns) {
  for (auto& [ordinal, device] : devices_) {
    settle(device, INT64_MAX);
    apply_toggles(device, end_ns);
    if (is_charged(device.tracing) && device.idle_from_ns) charge_gap(device, end_ns, nullptr);
    device.idle_from_ns.reset();
    device.host.reset();
  }
  edges_.clear();
}

// Ends an open gap whenever the mode changes: while kernels are not traced, it is unknown whether the device is idle.
void GpuWaiting::apply_toggles(Device& device, std::int64_t until_ns) {
  for (; device.next_toggle < toggles_.size() && toggles_[device.next_toggle].time_ns <= until_ns;
       ++device.next_toggle) {
    const Toggle& toggle = toggles_[device.next_toggle];
    if (is_charged(device.tracing) && device.idle_from_ns) charge_gap(device, toggle.time_ns, nullptr);
    collect_late_scopes(device);
    device.late_scopes.begin_anew();
    device.host.reset();
    if (is_charged(toggle.tracing)) device.host = host_at(toggle.time_ns);
    const WaitTracing before = std::exchange(device.tracing, toggle.tracing);
    device.part = toggle.part;
    const bool continues = before != WaitTracing::off && toggle.tracing != WaitTracing::off;
    if (continues && device.idle_from_ns && !device.is_draining) {
      device.idle_from_ns = std::max(*device.idle_from_ns, toggle.time_ns);
      continue;
    }
    device.idle_from_ns.reset();
    device.is_draining = toggle.tracing != WaitTracing::off;
    if (device.is_draining) device.idle_from_ns = toggle.drained_ns;
  }
}

void GpuWaiting::settle(Device& device, std::int64_t until_ns) {
  std::vector<LaunchedKernel>& pending = device.pending;
  const auto later =
      std::partition(pending.begin(), pending.end(), [&](const LaunchedKernel& k) { return k.start_ns < until_ns; });
  std::sort(pending.begin(), later, [](const LaunchedKernel& a, const LaunchedKernel& b) {
    return std::tie(a.start_ns, a.queue) < std::tie(b.start_ns, b.queue);
  });
  for (auto kernel = pending.begin(); kernel != later; ++kernel) {
    apply_toggles(device, kernel->start_ns);
    follow_launch(device, *kernel);
    if (is_charged(device.tracing) && device.idle_from_ns) charge_gap(device, kernel->start_ns, &*kernel);
    if (device.host && kernel->launch_ns.value_or(INT64_MIN) >= device.host->from_ns)
      device.late_scopes.add_kernel(kernel->scope, kernel->end_ns - kernel->start_ns);
    if (std::exchange(device.is_draining, false)) device.idle_from_ns.reset();
    device.idle_from_ns = std::max(device.idle_from_ns.value_or(kernel->end_ns), kernel->end_ns);
    device.last_queue = kernel->queue;
  }
  pending.erase(pending.begin(), later);
}

GpuWaiting::Sums& GpuWaiting::sums_for(const Device& device, std::int64_t gap_ns) {
  if (gap_ns >= kLongGap_ns && long_gaps_.size() < kMaxLongGaps) return long_gaps_.emplace_back();
  return device.tracing == WaitTracing::apart ? unusual_steps_[device.part] : short_gaps_;
}

GpuWaiting::HostPosition GpuWaiting::host_at(std::int64_t time_ns) const {
  const auto after = std::ranges::upper_bound(edges_, time_ns, {}, &HostEdge::time_ns);
  if (after == edges_.begin()) return {time_ns, 0, false, time_ns + kLatePeriod_ns, time_ns};
  return {time_ns, std::prev(after)->scope, std::prev(after)->synchronizes, time_ns + kLatePeriod_ns, time_ns};
}

// Adds the host's time in each scope to LateScopes. Leaves out time in which the host waits for the GPU, and the rest
// of that scope until the next launch: gaps in that time are charged to the synchronization.
void GpuWaiting::follow_host(Device& device, std::int64_t until_ns) {
  if (!device.host || until_ns <= device.host->time_ns) return;
  HostPosition& host = *device.host;
  const auto pass = [&](std::int64_t to_ns) {
    if (!host.has_synchronized) device.late_scopes.add_host_time(host.scope, to_ns - host.time_ns);
    host.time_ns = to_ns;
  };
  auto edge = std::ranges::upper_bound(edges_, host.time_ns, {}, &HostEdge::time_ns);
  for (; edge != edges_.end() && edge->time_ns <= until_ns; ++edge) {
    pass(edge->time_ns);
    // A device that is idle already does not make the host wait.
    const bool waits = edge->synchronizes && (!device.idle_from_ns || edge->time_ns < *device.idle_from_ns);
    if (waits) {
      device.late_scopes.begin_anew();
      host.synchronized_ns = edge->time_ns;
    }
    host.has_synchronized = waits || (host.has_synchronized && edge->scope == host.scope);
    host.scope = edge->scope;
  }
  pass(until_ns);
  if (until_ns < host.period_end_ns) return;
  device.late_scopes.end_period();
  host.period_end_ns = until_ns + kLatePeriod_ns;
}

void GpuWaiting::follow_launch(Device& device, const LaunchedKernel& kernel) {
  if (!kernel.launch_ns || !is_charged(device.tracing)) return;
  if (!device.host) device.host = host_at(*kernel.launch_ns);
  follow_host(device, *kernel.launch_ns);
  // A kernel that was launched before the synchronization does not end it: it waited in the queue.
  if (*kernel.launch_ns > device.host->synchronized_ns) device.host->has_synchronized = false;
}

void GpuWaiting::charge_gap(Device& device, std::int64_t to_ns, const LaunchedKernel* next) {
  for (const TimeSpan lost : lost_records_) {
    if (lost.end_ns <= *device.idle_from_ns || lost.begin_ns >= to_ns) continue;
    charge_idle_time(device, lost.begin_ns, nullptr);
    device.idle_from_ns = std::min(lost.end_ns, to_ns);
    follow_host(device, *device.idle_from_ns);
    device.late_scopes.begin_anew();
  }
  charge_idle_time(device, to_ns, next);
}

void GpuWaiting::charge_idle_time(Device& device, std::int64_t to_ns, const LaunchedKernel* next) {
  const std::int64_t from_ns = *device.idle_from_ns;
  if (to_ns <= from_ns) return;
  Sums& sums = sums_for(device, to_ns - from_ns);
  sums.span = {std::min(sums.span.begin_ns, from_ns), std::max(sums.span.end_ns, to_ns)};
  const bool is_short = to_ns - from_ns < kLongGap_ns;
  const std::uint32_t queue = next == nullptr ? device.last_queue : next->queue;
  const std::int64_t launch_ns = next == nullptr ? to_ns : std::clamp(next->launch_ns.value_or(to_ns), from_ns, to_ns);
  const TimeSpan before_launch{from_ns, launch_ns};
  if (is_short && next != nullptr && next->launch_ns) {
    charge_late_host(device, before_launch, queue, sums);
  } else {
    charge_host(before_launch, queue, sums);
  }
  if (next != nullptr) charge({launch_ns, to_ns}, queue, next->scope, WaitKind::host, sums);
  if (is_short) return;
  follow_host(device, launch_ns);
  device.late_scopes.begin_anew();
}

void GpuWaiting::charge_late_host(Device& device, TimeSpan span, std::uint32_t queue, Sums& sums) {
  std::int64_t late_ns = 0;
  for_each_scope(span, [&](TimeSpan piece, std::uint32_t scope, WaitKind kind) {
    if (kind == WaitKind::host) {
      late_ns += piece.end_ns - piece.begin_ns;
    } else {
      charge(piece, queue, scope, kind, sums);
    }
  });
  if (late_ns == 0 || device.late_scopes.add_wait(late_ns)) return;
  for_each_scope(span, [&](TimeSpan piece, std::uint32_t scope, WaitKind kind) {
    if (kind == WaitKind::host) charge(piece, queue, scope, kind, sums);
  });
}

// Moves the charges to the sums of short gaps, whose span already includes these gaps.
void GpuWaiting::collect_late_scopes(Device& device) {
  const std::vector<LateScopes::Charge> charges = device.late_scopes.take();
  if (charges.empty()) return;
  Sums& sums = sums_for(device, 0);
  for (const LateScopes::Charge& late : charges)
    charge({0, late.wait_ns}, device.last_queue, late.scope, WaitKind::host, sums);
}

void GpuWaiting::charge_host(TimeSpan span, std::uint32_t queue, Sums& sums) {
  for_each_scope(span,
                 [&](TimeSpan piece, std::uint32_t scope, WaitKind kind) { charge(piece, queue, scope, kind, sums); });
}

// If the host was synchronizing when the span began, the rest of that scope counts as synchronization: the host could
// not launch ahead.
template <class Charge>
void GpuWaiting::for_each_scope(TimeSpan span, Charge charge) const {
  if (span.end_ns <= span.begin_ns) return;
  const HostPosition begin = host_at(span.begin_ns);
  std::int64_t from_ns = span.begin_ns;
  std::uint32_t scope = begin.scope;
  bool has_synchronized = begin.has_synchronized;
  const auto pass = [&](std::int64_t to_ns) {
    charge(TimeSpan{from_ns, to_ns}, scope, has_synchronized ? WaitKind::synchronization : WaitKind::host);
    from_ns = to_ns;
  };
  auto edge = std::ranges::upper_bound(edges_, span.begin_ns, {}, &HostEdge::time_ns);
  for (; edge != edges_.end() && edge->time_ns < span.end_ns; ++edge) {
    if (edge->scope == scope) continue;  // the end of a synchronization
    pass(edge->time_ns);
    scope = edge->scope;
    has_synchronized = false;
  }
  pass(span.end_ns);
}

void GpuWaiting::charge(TimeSpan piece, std::uint32_t queue, std::uint32_t scope, WaitKind kind, Sums& sums) {
  if (piece.end_ns <= piece.begin_ns) return;
  WaitTally& tally = sums.tallies.try_emplace({queue, scope, kind}, WaitTally{queue, scope, kind, 0, 0}).first->second;
  ++tally.count;
  tally.time_ns += piece.end_ns - piece.begin_ns;
}

// Removes applied toggles, and edges before the earliest open gap except the last one, which gives the scope there.
void GpuWaiting::forget(std::int64_t until_ns) {
  std::int64_t open_ns = until_ns;
  std::size_t applied = toggles_.size();
  for (const auto& [ordinal, device] : devices_) {
    if (device.idle_from_ns) open_ns = std::min(open_ns, *device.idle_from_ns);
    if (device.host) open_ns = std::min(open_ns, device.host->time_ns);
    for (const LaunchedKernel& kernel : device.pending) open_ns = std::min(open_ns, kernel.start_ns);
    applied = std::min(applied, device.next_toggle);
  }
  std::erase_if(lost_records_, [&](TimeSpan lost) { return lost.end_ns <= open_ns; });
  const auto needed = std::ranges::upper_bound(edges_, open_ns, {}, &HostEdge::time_ns);
  if (needed - edges_.begin() > 1) edges_.erase(edges_.begin(), std::prev(needed));
  if (applied == 0) return;
  forgotten_tracing_ = toggles_[applied - 1].tracing;
  toggles_.erase(toggles_.begin(), toggles_.begin() + static_cast<std::ptrdiff_t>(applied));
  for (auto& [ordinal, device] : devices_) device.next_toggle -= applied;
}

void GpuWaiting::take(std::vector<Activity>& into) {
  for (auto& [ordinal, device] : devices_) collect_late_scopes(device);
  append_activity(short_gaps_.tallies, short_gaps_.span, into);
  for (const Sums& gap : long_gaps_) append_activity(gap.tallies, gap.span, into);
  for (const auto& [part, sums] : unusual_steps_) append_activity(sums.tallies, sums.span, into);
  short_gaps_ = {};
  long_gaps_.clear();
  unusual_steps_.clear();
}

}  // namespace joulemap

// SPDX-License-Identifier: Apache-2.0
//
// The part of the Ledger that charges the energy of idle devices to what they waited for.
#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "attribution/ledger/ledger.h"
#include "base/clock.h"

namespace joulemap::attribution {
namespace {

constexpr std::string_view kDataPhase = "dataloader";
constexpr std::string_view kInputPhase = "input";  // between a batch and the model that it goes to

bool is_communication(const ResolvedScope& scope) {
  return scope.phase == "communication" || scope.op.starts_with("c10d") || scope.op.starts_with("nccl");
}

// `spans` are in order of time.
bool is_within_one(const std::vector<TimeSpan>& spans, TimeSpan span) {
  const auto after = std::ranges::upper_bound(spans, span.begin_ns, {}, &TimeSpan::begin_ns);
  return after != spans.begin() && span.end_ns <= std::prev(after)->end_ns;
}

bool uses_device(const ProcessNames& names, const std::string& device) {
  return std::ranges::any_of(names.queues, [&](const auto& queue) { return names.device_of(queue.first) == device; });
}

}  // namespace

IdleCause Ledger::idle_cause(std::uint32_t process, const WaitTally& wait, TimeSpan span) {
  ProcessNames& names = sums_.names(process);
  const ResolvedScope& scope = names.scopes.resolved_scope(wait.scope);
  if (scope.phase == kDataPhase || scope.phase == kInputPhase) return IdleCause::data;
  if (scope.phase == kCompilePhase) return IdleCause::compilation;
  if (scope.phase.starts_with(kCheckpointPhase)) return IdleCause::checkpoint;
  if (scope.phase == kSetupPhase) return IdleCause::startup;
  if (is_communication(scope)) return IdleCause::communication;
  if (names.trains && !scope.mode.empty() && scope.mode != kTrainMode && !scope.is_probe())
    return IdleCause::evaluation;
  if (wait.kind == WaitKind::synchronization) return IdleCause::synchronization;
  if (!scope.phase.empty() || !scope.module.empty() || !scope.op.empty()) return IdleCause::launch;
  if (!names.steps_span) return IdleCause::host;
  if (span.begin_ns < names.steps_span->begin_ns) return IdleCause::startup;
  if (span.begin_ns >= names.steps_span->end_ns) return IdleCause::shutdown;
  return is_within_one(names.between_steps, span) ? IdleCause::between : IdleCause::host;
}

void Ledger::add_waits(std::uint32_t process, const Activity& activity, double inside) {
  ProcessNames& names = sums_.names(process);
  for (const WaitTally& wait : activity.waits) {
    const ResolvedScope& scope = names.scopes.resolved_scope(wait.scope);
    const Extrapolation all = names.extrapolation_of({activity.begin_ns, activity.end_ns}, scope.is_one_time(), 0);
    const std::string device = names.device_of(wait.queue);
    const auto gpu = energy_.gpus.find(device);
    if (gpu == energy_.gpus.end()) continue;
    const double time_s = seconds(wait.time_ns) * all.weight;
    const auto rate = gpu_attribution_.waiting_rate(device, all.span.begin_ns, all.span.end_ns);
    charge_idle(process, wait, {activity.begin_ns, activity.end_ns}, gpu->second.domain,
                {inside * time_s * rate.time_share, inside * time_s * rate.watts});
  }
}

void Ledger::charge_idle(std::uint32_t process, const WaitTally& wait, TimeSpan span, const std::string& domain,
                         const IdleSum& idle) {
  const ResolvedScope& scope = sums_.names(process).scopes.resolved_scope(wait.scope);
  // Rows of kernels and functions are not scopes.
  const bool has_row = level_ != RowLevel::kernel && level_ != RowLevel::function;
  std::vector<std::string> path = has_row ? path_at_level(process, scope) : std::vector<std::string>();
  IdleSum& sum = idle_[{idle_cause(process, wait, span), {path, domain}}];
  sum.time_s += idle.time_s;
  sum.energy_j += idle.energy_j;
  if (path.empty()) return;
  Amount amount;
  amount.waiting_s = idle.time_s;
  amount.waiting_j = idle.energy_j;
  credit(std::move(path), domain, amount, scope, kTimeShareBasis, true);
}

// In untraced steps of light mode the GPU may be idle for longer than in the traced ones that extrapolate to them: a batch
// came late. The time that the host spent in each scope is known there, too, and shares that idle energy.
void Ledger::add_unexplained_idle(std::uint32_t process, const Activity& activity) {
  const ProcessNames& names = sums_.names(process);
  const double length_s = seconds(activity.end_ns - activity.begin_ns);
  if (!knows_waiting() || !names.steps.is_light_mode() || activity.scope_tallies.empty() || length_s <= 0) return;
  std::set<std::string> devices;
  for (const auto& [id, queue] : names.queues) devices.insert(names.device_of(id));
  double scopes_s = 0;
  for (const ScopeTally& tally : activity.scope_tallies) {
    if (tally.scope != 0) scopes_s += seconds(tally.wall_ns);
  }
  const double whole_s = std::max(scopes_s, length_s);  // threads that wait in the root do not count
  for (const std::string& device : devices) {
    const auto gpu = energy_.gpus.find(device);
    GpuAttribution::IdleAmount idle = gpu_attribution_.unexplained_between(device, activity.begin_ns, activity.end_ns);
    if (gpu == energy_.gpus.end() || idle.energy_j <= 0) continue;
    const auto users = static_cast<double>(std::ranges::count_if(sums_.processes(), [&](const auto& process_names) {
      return process_names.second.steps.is_light_mode() && uses_device(process_names.second, device);
    }));
    idle = {idle.time_s / users, idle.energy_j / users};
    const auto charge = [&](std::uint32_t scope, double share) {
      const WaitTally wait{.queue = 0, .scope = scope, .kind = WaitKind::host, .count = 1, .time_ns = 0};
      charge_idle(process, wait, {activity.begin_ns, activity.end_ns}, gpu->second.domain,
                  {share * idle.time_s, share * idle.energy_j});
    };
    for (const ScopeTally& tally : activity.scope_tallies) {
      if (tally.scope != 0 && tally.wall_ns > 0) charge(tally.scope, seconds(tally.wall_ns) / whole_s);
    }
    if (scopes_s < whole_s) charge(0, 1 - scopes_s / whole_s);
    IdleSum& explained = explained_by_host_[gpu->second.domain];
    explained.time_s += idle.time_s;
    explained.energy_j += idle.energy_j;
  }
}

std::vector<IdleEntry> Ledger::idle_entries() const {
  std::map<std::pair<IdleCause, Key>, IdleSum> all = idle_;
  const auto add = [&](IdleCause cause, const std::string& device, double time_s, double energy_j) {
    if (energy_j <= 0 && time_s <= 0) return;
    IdleSum& sum = all[{cause, {{}, device}}];
    sum.time_s += time_s;
    sum.energy_j += energy_j;
  };
  for (const GpuAttribution::UnexplainedIdle& idle : gpu_attribution_.unexplained_idle()) {
    const auto explained = explained_by_host_.find(idle.device);
    const IdleSum by_host = explained == explained_by_host_.end() ? IdleSum() : explained->second;
    add(IdleCause::startup, idle.device, idle.before_s, idle.before_j);
    add(IdleCause::unknown, idle.device, std::max(idle.between_s - by_host.time_s, 0.0),
        idle.between_j - by_host.energy_j);
    add(IdleCause::shutdown, idle.device, idle.after_s, idle.after_j);
  }
  if (level_ != RowLevel::kernel) add(IdleCause::unknown, std::string(kCpuDevice), 0, cpu_attribution_.idle_j());
  std::vector<IdleEntry> entries;
  for (const auto& [key, sum] : all) {
    IdleEntry& entry = entries.emplace_back();
    entry.cause = key.first;
    std::tie(entry.path, entry.device) = key.second;
    entry.time_s = sum.time_s;
    entry.energy_j = sum.energy_j;
    entry.in_rows = !entry.path.empty();
    if (const auto interval = gpu_attribution_.idle_interval(entry.device, sum.energy_j))
      std::tie(entry.low_j, entry.high_j) = *interval;
  }
  std::ranges::stable_sort(entries, std::greater(), [](const IdleEntry& entry) { return entry.energy_j.value_or(0); });
  return entries;
}

}  // namespace joulemap::attribution

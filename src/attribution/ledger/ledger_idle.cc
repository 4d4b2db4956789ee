// SPDX-License-Identifier: Apache-2.0
//
// The part of the Ledger that charges the energy of idle devices to what they waited for.
#include <algorithm>

#include "attribution/ledger/ledger.h"
#include "base/clock.h"

namespace joulemap::attribution {
namespace {

constexpr std::string_view kDataPhase = "dataloader";
constexpr std::string_view kInputPhase = "input";  // between a batch and the model that it goes to
constexpr std::string_view kCompilePhase = "compile";
constexpr std::string_view kCheckpointPhase = "checkpoint";  // the first word of its phases
constexpr std::string_view kSetupPhase = "setup";

bool is_communication(const ResolvedScope& scope) {
  return scope.phase == "communication" || scope.op.starts_with("c10d") || scope.op.starts_with("nccl");
}

}  // namespace

IdleCause Ledger::idle_cause(std::uint32_t process, const WaitTally& wait, std::int64_t begin_ns) {
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
  if (begin_ns < names.steps_span->begin_ns) return IdleCause::startup;
  return begin_ns < names.steps_span->end_ns ? IdleCause::host : IdleCause::shutdown;
}

void Ledger::add_waits(std::uint32_t process, const Activity& activity, double inside) {
  ProcessNames& names = sums_.names(process);
  for (const WaitTally& wait : activity.waits) {
    const ResolvedScope& scope = names.scopes.resolved_scope(wait.scope);
    const Extrapolation all = names.extrapolation_of({activity.begin_ns, activity.end_ns}, scope.is_probe(), 0);
    const std::string device = names.device_of(wait.queue);
    const auto gpu = energy_.gpus.find(device);
    if (gpu == energy_.gpus.end()) continue;
    Amount amount;
    amount.waiting_s = seconds(wait.time_ns) * all.weight;
    amount.waiting_j =
        amount.waiting_s * inside * gpu_attribution_.waiting_rate(device, all.span.begin_ns, all.span.end_ns);
    // Rows of kernels and functions are not scopes.
    const bool has_row = level_ != RowLevel::kernel && level_ != RowLevel::function;
    std::vector<std::string> path = has_row ? path_at_level(process, scope) : std::vector<std::string>();
    IdleSum& sum = idle_[{idle_cause(process, wait, activity.begin_ns), {path, gpu->second.domain}}];
    sum.time_s += amount.waiting_s;
    sum.energy_j += amount.waiting_j;
    if (!path.empty()) credit(std::move(path), gpu->second.domain, amount, scope, kTimeShareBasis, true);
  }
}

std::vector<IdleEntry> Ledger::idle_entries() const {
  std::vector<IdleEntry> entries;
  const auto add = [&](IdleCause cause, const Key& key, double time_s, double energy_j) {
    if (energy_j <= 0 && time_s <= 0) return;
    IdleEntry& entry = entries.emplace_back();
    entry.cause = cause;
    entry.path = key.first;
    entry.device = key.second;
    entry.time_s = time_s;
    entry.energy_j = energy_j;
    entry.in_rows = !key.first.empty();
    if (const auto interval = gpu_attribution_.idle_interval(key.second, energy_j)) {
      entry.low_j = interval->first;
      entry.high_j = interval->second;
    }
  };
  for (const auto& [key, sum] : idle_) add(key.first, key.second, sum.time_s, sum.energy_j);
  for (const GpuAttribution::UnexplainedIdle& idle : gpu_attribution_.unexplained_idle()) {
    add(IdleCause::startup, {{}, idle.device}, idle.before_s, idle.before_j);
    add(IdleCause::unknown, {{}, idle.device}, idle.between_s, idle.between_j);
    add(IdleCause::shutdown, {{}, idle.device}, idle.after_s, idle.after_j);
  }
  if (level_ != RowLevel::kernel) add(IdleCause::unknown, {{}, std::string(kCpuDevice)}, 0, cpu_attribution_.idle_j());
  std::ranges::stable_sort(entries, std::greater(), [](const IdleEntry& entry) { return entry.energy_j.value_or(0); });
  return entries;
}

}  // namespace joulemap::attribution

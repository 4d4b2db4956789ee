// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/wait_cause.h"

#include <algorithm>
#include <iterator>

namespace joulemap::attribution {
namespace {

constexpr std::string_view kBatchInputPhase = "input";  // from the delivery of a batch to the call of the model

bool is_communication_scope(const ResolvedScope& scope) {
  return scope.phase == "communication" || scope.op.starts_with("c10d") || scope.op.starts_with("nccl");
}

// `spans` are in order of time.
bool is_within_any_span(const std::vector<TimeSpan>& spans, TimeSpan span) {
  const auto following_span = std::ranges::upper_bound(spans, span.begin_ns, {}, &TimeSpan::begin_ns);
  return following_span != spans.begin() && span.end_ns <= std::prev(following_span)->end_ns;
}

}  // namespace

IdleCause idle_cause_of_wait(ProcessActivity& names, const WaitTally& wait, TimeSpan span) {
  const ResolvedScope& scope = names.scopes.resolved_scope(wait.scope);
  if (scope.phase == kDataLoaderPhase || scope.phase == kBatchInputPhase) return IdleCause::data;
  if (scope.phase == kCompilePhase) return IdleCause::compilation;
  if (scope.phase.starts_with(kCheckpointPhase)) return IdleCause::checkpoint;
  if (scope.phase == kSetupPhase) return IdleCause::startup;
  if (is_communication_scope(scope)) return IdleCause::communication;
  if (names.has_training && !scope.train_or_probe_mode.empty() && scope.train_or_probe_mode != kTrainModeScopeName &&
      !scope.is_probe())
    return IdleCause::evaluation;
  if (wait.kind == WaitKind::synchronization) return IdleCause::synchronization;
  if (!scope.phase.empty() || !scope.module.empty() || !scope.op.empty()) return IdleCause::launch;
  if (!names.steps_span) return IdleCause::host;
  if (span.begin_ns < names.steps_span->begin_ns) return IdleCause::startup;
  if (span.begin_ns >= names.steps_span->end_ns) return IdleCause::shutdown;
  return is_within_any_span(names.gaps_between_steps, span) ? IdleCause::between : IdleCause::host;
}

}  // namespace joulemap::attribution

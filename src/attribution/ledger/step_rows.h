// SPDX-License-Identifier: Apache-2.0
//
// Rows of steps and epochs: the energy of the whole machine during each of them. Each ends where the next begins.
// Evaluation steps (MarkKind::evaluation) have rows, too, but do not count as steps of the program. No
// mark shows where the last one ended: a step is assumed to last the median of the others, if there are enough, and an
// epoch ends with the command. Probing belongs to no step and is a row of its own. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "attribution/gpu/probe_spans.h"
#include "attribution/ledger/ledger.h"

namespace joulemap::attribution {

struct StepOrEpochMark {
  std::int64_t time_ns = 0;
  std::uint64_t number = 0;
  bool is_evaluation = false;
};

// The last `step_count` steps that began before time_ns are evaluation steps.
struct EvaluationMark {
  std::int64_t time_ns = 0;
  std::uint64_t step_count = 0;
};
// Sorts the steps by time and sets is_evaluation.
void mark_evaluation_steps(std::vector<StepOrEpochMark>& steps, std::span<const EvaluationMark> evaluations);

// Times of the marks without evaluation steps, sorted.
std::vector<std::int64_t> training_mark_times_ns(const std::vector<StepOrEpochMark>& step_marks);

struct StepOrEpochEnergy {
  std::uint64_t number = 0;
  TimeSpan span;
  double time_s = 0;  // without probing, as is energy_j
  std::optional<double> energy_j;
  bool is_evaluation = false;
};
enum class LastStepEndRule : std::uint8_t { at_command_end, after_median_length };
// One element for each mark, in order of time. `energy_j`: energy of the machine; may be empty.
std::vector<StepOrEpochEnergy> compute_energies_between_marks(std::vector<StepOrEpochMark> step_marks,
                                                              const EnergyFunction& energy_j, TimeSpan span,
                                                              const ProbeSpans& probing,
                                                              LastStepEndRule last = LastStepEndRule::at_command_end);

// `name`: "step" or "epoch"; the last step ends after the median length. `energy_j`: of all counted domains; empty if
// none is known. Several processes of one run (ranks) number the same steps: the caller passes those of the process
// with the most.
LedgerResult make_step_rows(std::string_view name, std::vector<StepOrEpochMark> step_marks,
                            const EnergyFunction& energy_j, TimeSpan span, const ProbeSpans& probing);

// The same steps on several machines: one row for each number, with the energy of all and the time of the slowest. A
// number that a machine reports repeatedly is matched with those of the other machines in order.
std::vector<ReportRow> merge_step_rows(const std::vector<std::vector<ReportRow>>& rows_by_machine);
// Other rows of several machines, the largest first. Merges rows of equal path and device, from a machine that was
// recorded several times.
std::vector<ReportRow> merge_machine_rows(std::vector<std::vector<ReportRow>> rows_by_machine);

}  // namespace joulemap::attribution

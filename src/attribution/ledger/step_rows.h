// SPDX-License-Identifier: Apache-2.0
//
// Rows of steps and epochs: the energy of the whole machine during each of them. Each ends where the next begins; of
// those that are only partly within the command's span, or within a part of it, rows contain the part inside.
// Evaluation steps (MarkKind::evaluation) have rows, too, but do not count as steps of the program. No mark shows where
// the last one ended: a step is assumed to last the median of the others of its kind, if there are enough, and an epoch
// ends with its last step, if there are steps. Probing belongs to no step and is a row of its own. Pure.
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
// Uninterrupted sequences of evaluation steps, after mark_evaluation_steps.
std::uint64_t count_evaluation_groups(std::span<const StepOrEpochMark> steps);

// Removes the last `count` marks, those of a MarkKind::step_retraction or epoch_retraction. Marks of a process arrive in
// the order in which it reported them.
void retract_marks(std::vector<StepOrEpochMark>& marks, std::uint64_t count);

// Median length of the steps of the last one's kind, or of all; none if there are too few. `step_marks`: sorted by time.
std::optional<std::int64_t> median_step_length_ns(std::span<const StepOrEpochMark> step_marks);
// Where the last step ended: after the median length, or at `latest_ns`. `step_marks`: sorted by time, not empty.
std::int64_t estimate_last_step_end_ns(std::span<const StepOrEpochMark> step_marks, std::int64_t latest_ns);

// Sum over the marks of the fraction of each step or epoch that lies within the spans, which do not overlap. The last one
// counts as a whole, because its end is unknown. `step_marks`: sorted by time.
double count_covered(std::span<const StepOrEpochMark> step_marks, std::span<const TimeSpan> spans, bool of_evaluation);

// Times of the marks without evaluation steps, sorted.
std::vector<std::int64_t> training_mark_times_ns(const std::vector<StepOrEpochMark>& step_marks);

struct StepOrEpochEnergy {
  std::uint64_t number = 0;
  TimeSpan span;
  double time_s = 0;  // without probing, as is energy_j
  std::optional<double> energy_j;
  bool is_evaluation = false;
  double covered_fraction = 1;  // of the step or epoch, within `span` of the command
};
// Marks of steps or epochs, and where the last one ends.
struct StepOrEpochMarks {
  std::vector<StepOrEpochMark> marks;
  std::int64_t end_ns = 0;
};
// One element for each mark whose step or epoch overlaps the span, in order of time. `energy_j`: energy of the machine;
// may be empty.
std::vector<StepOrEpochEnergy> compute_energies_between_marks(StepOrEpochMarks step_marks,
                                                              const EnergyFunction& energy_j, TimeSpan span,
                                                              const ProbeSpans& probing);

// `name`: "step" or "epoch". `energy_j`: of all counted domains; empty if none is known. Several processes of one run
// (ranks) number the same steps: the caller passes those of the process with the most.
LedgerResult make_step_rows(std::string_view name, StepOrEpochMarks step_marks, const EnergyFunction& energy_j,
                            TimeSpan span, const ProbeSpans& probing);

// The same steps on several machines: one row for each number, with the energy of all and the time of the slowest. A
// number that a machine reports repeatedly is matched with those of the other machines in order.
std::vector<ReportRow> merge_step_rows(const std::vector<std::vector<ReportRow>>& rows_by_machine);
// Other rows of several machines, the largest first. Merges rows of equal path and device, from a machine that was
// recorded several times.
std::vector<ReportRow> merge_machine_rows(std::vector<std::vector<ReportRow>> rows_by_machine);

}  // namespace joulemap::attribution

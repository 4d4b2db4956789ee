// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/step_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/median.h"
#include "model/activity.h"

namespace joulemap::attribution {
namespace {

ReportRow make_step_or_epoch_row(std::string name, double time_s, std::optional<double> energy_j) {
  ReportRow row;
  row.path = {name};
  row.name = row.display_name = std::move(name);
  row.count = 1;
  row.time_s = std::max(time_s, 0.0);
  if (energy_j) row.basis = "measured";
  row.energy_j = energy_j;
  if (energy_j && row.time_s > 0) row.power_w = *energy_j / row.time_s;
  return row;
}

constexpr std::size_t kMinStepsForMedianLength = 3;

double overlap_ns(TimeSpan a, TimeSpan b) {
  return static_cast<double>(
      std::max<std::int64_t>(std::min(a.end_ns, b.end_ns) - std::max(a.begin_ns, b.begin_ns), 0));
}

// Adds a row of another recording of the same machine. Their errors are correlated: interval widths add up.
void add_row(ReportRow& sum, const ReportRow& row) {
  const auto add = [](std::optional<double>& sum_value, const std::optional<double>& added_value) {
    sum_value = sum_value && added_value ? std::optional(*sum_value + *added_value) : std::nullopt;
  };
  const bool has_more_energy = row.energy_j.value_or(0) > sum.energy_j.value_or(0);
  if (has_more_energy) sum.basis = row.basis;
  sum.count = sum.count && row.count ? std::optional(*sum.count + *row.count) : std::nullopt;
  sum.time_s += row.time_s;
  add(sum.energy_j, row.energy_j);
  add(sum.low_j, row.low_j);
  add(sum.high_j, row.high_j);
  add(sum.dynamic_j, row.dynamic_j);
  add(sum.waiting_s, row.waiting_s);
  add(sum.waiting_j, row.waiting_j);
  add(sum.waiting_low_j, row.waiting_low_j);
  add(sum.waiting_high_j, row.waiting_high_j);
  if (sum.cause && row.cause) {
    for (const EnergyCauseClass cause : kCauseClasses) sum.cause->times_s[cause] += row.cause->times_s[cause];
    sum.cause->largest_class = sum.cause->times_s.largest_class();
  } else {
    sum.cause.reset();
  }
  sum.power_w = sum.energy_j && sum.time_s > 0 ? std::optional(*sum.energy_j / sum.time_s) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> median_step_length_ns(std::span<const StepOrEpochMark> step_marks) {
  std::vector<std::int64_t> lengths_ns;
  std::vector<std::int64_t> lengths_of_kind_ns;
  for (std::size_t i = 1; i < step_marks.size(); ++i) {
    lengths_ns.push_back(step_marks[i].time_ns - step_marks[i - 1].time_ns);
    if (step_marks[i - 1].is_evaluation == step_marks.back().is_evaluation)
      lengths_of_kind_ns.push_back(lengths_ns.back());
  }
  if (lengths_of_kind_ns.size() >= kMinStepsForMedianLength) lengths_ns = std::move(lengths_of_kind_ns);
  if (lengths_ns.size() < kMinStepsForMedianLength) return std::nullopt;
  return median_or<std::int64_t>(std::move(lengths_ns), 0);
}

std::int64_t estimate_last_step_end_ns(std::span<const StepOrEpochMark> step_marks, std::int64_t latest_ns) {
  const std::optional<std::int64_t> length_ns = median_step_length_ns(step_marks);
  return length_ns ? std::min(latest_ns, step_marks.back().time_ns + *length_ns) : latest_ns;
}

double count_covered(std::span<const StepOrEpochMark> step_marks, std::span<const TimeSpan> spans, bool of_evaluation) {
  double count = 0;
  for (std::size_t i = 0; i < step_marks.size(); ++i) {
    if (step_marks[i].is_evaluation != of_evaluation) continue;
    const std::int64_t begin_ns = step_marks[i].time_ns;
    const std::int64_t end_ns = i + 1 < step_marks.size() ? step_marks[i + 1].time_ns : begin_ns;
    double covered_ns = 0;
    bool begins_inside = false;
    for (const TimeSpan& span : spans) {
      covered_ns += overlap_ns({begin_ns, end_ns}, span);
      begins_inside = begins_inside || (begin_ns >= span.begin_ns && begin_ns <= span.end_ns);
    }
    count += end_ns > begin_ns ? covered_ns / static_cast<double>(end_ns - begin_ns) : (begins_inside ? 1 : 0);
  }
  return count;
}

void retract_marks(std::vector<StepOrEpochMark>& marks, std::uint64_t count) {
  marks.resize(marks.size() - std::min<std::size_t>(marks.size(), count));
}

void mark_evaluation_steps(std::vector<StepOrEpochMark>& steps, std::span<const EvaluationMark> evaluations) {
  std::ranges::sort(steps, {}, &StepOrEpochMark::time_ns);
  for (const EvaluationMark& evaluation : evaluations) {
    auto step = std::ranges::lower_bound(steps, evaluation.time_ns, {}, &StepOrEpochMark::time_ns);
    for (std::uint64_t count = 0; count < evaluation.step_count && step != steps.begin(); ++count)
      (--step)->is_evaluation = true;
  }
}

std::uint64_t count_evaluation_groups(std::span<const StepOrEpochMark> steps) {
  std::uint64_t count = 0;
  bool is_in_evaluation = false;
  for (const StepOrEpochMark& step : steps) {
    if (step.is_evaluation && !is_in_evaluation) ++count;
    is_in_evaluation = step.is_evaluation;
  }
  return count;
}

std::vector<std::int64_t> training_mark_times_ns(const std::vector<StepOrEpochMark>& step_marks) {
  std::vector<std::int64_t> begins_ns;
  for (const StepOrEpochMark& step_mark : step_marks) {
    if (!step_mark.is_evaluation) begins_ns.push_back(step_mark.time_ns);
  }
  std::sort(begins_ns.begin(), begins_ns.end());
  return begins_ns;
}

std::vector<StepOrEpochEnergy> compute_energies_between_marks(StepOrEpochMarks step_marks,
                                                              const EnergyFunction& energy_j, TimeSpan span,
                                                              const ProbeSpans& probing) {
  std::vector<StepOrEpochMark>& marks = step_marks.marks;
  std::ranges::sort(marks, {}, &StepOrEpochMark::time_ns);
  std::vector<StepOrEpochEnergy> energies;
  energies.reserve(marks.size());
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const TimeSpan whole{marks[i].time_ns,
                         std::max(i + 1 < marks.size() ? marks[i + 1].time_ns : step_marks.end_ns, marks[i].time_ns)};
    const bool ends_before = whole.end_ns <= span.begin_ns && whole.begin_ns < span.begin_ns;
    const bool begins_after = whole.begin_ns >= span.end_ns && whole.end_ns > span.end_ns;
    if (ends_before || begins_after) continue;
    const std::int64_t begin_ns = std::clamp(whole.begin_ns, span.begin_ns, span.end_ns);
    const std::int64_t end_ns = std::clamp(whole.end_ns, span.begin_ns, span.end_ns);
    std::optional<double> step_energy_j;
    if (energy_j)
      step_energy_j = energy_j(begin_ns, end_ns) - probing.energy_in_spans_between(energy_j, begin_ns, end_ns);
    const double time_s = seconds(end_ns - begin_ns) - probing.time_in_spans_between_s(begin_ns, end_ns);
    const auto whole_ns = static_cast<double>(whole.end_ns - whole.begin_ns);
    energies.push_back({marks[i].number,
                        {begin_ns, end_ns},
                        std::max(time_s, 0.0),
                        step_energy_j,
                        marks[i].is_evaluation,
                        whole_ns > 0 ? static_cast<double>(end_ns - begin_ns) / whole_ns : 1});
  }
  return energies;
}

LedgerResult make_step_rows(std::string_view name, StepOrEpochMarks step_marks, const EnergyFunction& energy_j,
                            TimeSpan span, const ProbeSpans& probing) {
  LedgerResult result;
  double attributed_j = 0;
  for (const StepOrEpochEnergy& step_or_epoch_energy :
       compute_energies_between_marks(std::move(step_marks), energy_j, span, probing)) {
    result.rows.push_back(make_step_or_epoch_row(fmt::format("{} {}", name, step_or_epoch_energy.number),
                                                 step_or_epoch_energy.time_s, step_or_epoch_energy.energy_j));
    result.rows.back().name = fmt::format("{}", step_or_epoch_energy.number);
    if (step_or_epoch_energy.is_evaluation) result.rows.back().display_name += " (evaluation)";
  }
  if (!probing.empty() && !result.rows.empty()) {
    const std::optional<double> probed_j = energy_j ? std::optional(probing.energy_in_spans(energy_j)) : std::nullopt;
    result.rows.push_back(make_step_or_epoch_row(std::string(kProbeModeScopeName), probing.total_s(), probed_j));
  }
  for (const ReportRow& row : result.rows) attributed_j += row.energy_j.value_or(0);
  if (!energy_j) return result;
  result.attributed_j = attributed_j;
  result.idle_j = 0;
  result.unattributed_j = energy_j(span.begin_ns, span.end_ns) - attributed_j;
  for (ReportRow& row : result.rows) {
    if (attributed_j > 0) row.share = *row.energy_j / attributed_j;
  }
  return result;
}

std::vector<ReportRow> merge_step_rows(const std::vector<std::vector<ReportRow>>& rows_by_machine) {
  std::vector<ReportRow> merged_rows;
  std::map<std::pair<std::vector<std::string>, std::uint64_t>, std::size_t> row_indices;  // by path and occurrence
  for (const std::vector<ReportRow>& rows : rows_by_machine) {
    std::map<std::vector<std::string>, std::uint64_t> occurrence_counts;
    for (const ReportRow& row : rows) {
      const auto [slot, is_new] =
          row_indices.try_emplace({row.path, occurrence_counts[row.path]++}, merged_rows.size());
      if (is_new) {
        merged_rows.push_back(row);
        continue;
      }
      ReportRow& merged_row = merged_rows[slot->second];
      merged_row.time_s = std::max(merged_row.time_s, row.time_s);
      if (row.energy_j) merged_row.energy_j = merged_row.energy_j.value_or(0) + *row.energy_j;
      if (merged_row.energy_j && merged_row.time_s > 0) merged_row.power_w = *merged_row.energy_j / merged_row.time_s;
    }
  }
  return merged_rows;
}

std::vector<ReportRow> merge_machine_rows(std::vector<std::vector<ReportRow>> rows_by_machine) {
  std::map<std::pair<std::vector<std::string>, std::string>, ReportRow> rows_by_path_and_device;
  for (std::vector<ReportRow>& rows : rows_by_machine) {
    for (ReportRow& row : rows) {
      const auto [merged_row, is_new] = rows_by_path_and_device.try_emplace({row.path, row.device}, row);
      if (!is_new) add_row(merged_row->second, row);
    }
  }
  std::vector<ReportRow> sorted_rows;
  sorted_rows.reserve(rows_by_path_and_device.size());
  for (auto& [key, row] : rows_by_path_and_device) sorted_rows.push_back(std::move(row));
  std::stable_sort(sorted_rows.begin(), sorted_rows.end(), [](const ReportRow& a, const ReportRow& b) {
    return std::pair(a.energy_j.value_or(0), a.time_s) > std::pair(b.energy_j.value_or(0), b.time_s);
  });
  return sorted_rows;
}

}  // namespace joulemap::attribution

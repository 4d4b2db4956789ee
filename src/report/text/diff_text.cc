// SPDX-License-Identifier: Apache-2.0
#include "report/text/diff_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "base/text.h"
#include "report/text/diagnostics_text.h"
#include "report/text/energy_rows.h"
#include "report/text/idle_gpu_text.h"
#include "report/text/kernel_names.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kNumberWidth = 8;
constexpr std::size_t kPercentWidth = 7;
constexpr std::size_t kIntervalWidth = 19;

std::string signed_number(double value, int digits = 3) {
  return (value > 0 ? "+" : "") + format_number(value, digits);
}

std::string relative_change_text(const DifferenceEntry& entry) {
  if (!entry.relative_change || !entry.b) return {};
  const double percent = 100 * *entry.relative_change;
  if (percent > 9999) return ">+9999%";
  return fmt::format("{:+.{}f}%", percent, std::abs(percent) < 9.95 ? 1 : 0);
}

std::string difference_interval_text(const DifferenceEntry& entry) {
  if (!entry.low_j || !entry.high_j) return "unknown";
  return fmt::format("{} .. {}", signed_number(*entry.low_j, 2), signed_number(*entry.high_j, 2));
}

std::string entry_path_text(const DifferenceEntry& entry, std::string_view level_name, bool shows_device,
                            std::size_t columns) {
  const std::string device = entry.device.empty() || !shows_device ? "" : entry.device + " ";
  if (level_name == "kernel") return device + brief_kernel_name(printable(entry.display_name), columns - device.size());
  std::string path = device;
  for (std::size_t i = 0; i < entry.path.size(); ++i) path += (i > 0 ? " " : "") + printable(entry.path[i]);
  if (entry.path.empty()) path += entry.display_name;
  return shorten_to_columns(path, columns);
}

bool has_several_devices(const RunDifference& difference) {
  return std::any_of(difference.entries.begin(), difference.entries.end(),
                     [&](const DifferenceEntry& entry) { return entry.device != difference.entries.front().device; });
}

class Table {
 public:
  Table(const RunDifference& difference, const TextStyle& style)
      : row_level_name_(difference.by),
        style_(style),
        name_(style.columns - 2 * (kNumberWidth + 1) - kPercentWidth - kIntervalWidth - 4),
        shows_device_(has_several_devices(difference)) {}

  std::string header() const {
    const std::string text = fmt::format(" {:<{}} {:>{}} {:>{}} {:>{}}  {:>{}}", "", name_, "A", kNumberWidth, "B",
                                         kNumberWidth, "change", kPercentWidth, "B - A interval", kIntervalWidth);
    return style_.dimmed(text) + "\n";
  }
  std::string line(const DifferenceEntry& entry) const {
    const auto energy = [](const std::optional<ComparedEnergy>& compared_energy) {
      if (!compared_energy) return std::string("-");
      std::string text = format_number(compared_energy->energy_j);
      return text.size() <= kNumberWidth ? text : fmt::format("{:.1e}", compared_energy->energy_j);
    };
    const std::string change = align_right(relative_change_text(entry), kPercentWidth);
    const std::string coloured_change = entry.verdict == ChangeVerdict::grew     ? style_.red(change)
                                        : entry.verdict == ChangeVerdict::shrank ? style_.green(change)
                                                                                 : change;
    return fmt::format(" {} {:>{}} {:>{}} {}  {:>{}}\n",
                       align_left(entry_path_text(entry, row_level_name_, shows_device_, name_), name_),
                       energy(entry.a), kNumberWidth, energy(entry.b), kNumberWidth, coloured_change,
                       difference_interval_text(entry), kIntervalWidth);
  }

 private:
  std::string row_level_name_;
  TextStyle style_;
  std::size_t name_;
  bool shows_device_;
};

// Number of compared units: "343 steps", or "331 of 343 steps" if some steps are excluded.
std::string compared_units_text(const ComparedRun& run, std::string_view reference_unit) {
  double steps = 0;
  for (const ComparedRecording& recording : run.recordings) steps += recording.steps;
  if (reference_unit == "step" && steps > run.units) return fmt::format("{:.0f} of {:.0f} steps", run.units, steps);
  return fmt::format("{:.0f} {}s", run.units, reference_unit);
}

std::string compared_run_line(std::string_view side_letter, const ComparedRun& run, std::string_view reference_unit,
                              const TextStyle& style) {
  std::string inputs_text;
  for (const std::string& file : run.inputs) inputs_text += (inputs_text.empty() ? "" : " ") + printable(file);
  if (run.inputs.size() > 1) inputs_text = fmt::format("{} recordings: {}", run.inputs.size(), inputs_text);
  std::string units = reference_unit == "run" ? "" : ", " + compared_units_text(run, reference_unit);
  if (run.time_s) units += fmt::format(", {}{}", duration_text(*run.time_s), reference_unit == "run" ? "" : " each");
  if (run.is_estimated) units += ", estimated";
  const std::size_t used_columns = units.size() + side_letter.size() + 3;
  return fmt::format(
      " {}  {}{}\n", side_letter,
      shorten_to_columns(inputs_text, style.columns > used_columns + 12 ? style.columns - used_columns : 12), units);
}

std::string verdict_section_text(const RunDifference& difference, ChangeVerdict verdict, std::string_view heading,
                                 std::size_t max_rows, const Table& table, const TextStyle& style) {
  std::string out;
  std::size_t count = 0;
  double remaining_difference_j = 0;
  for (const DifferenceEntry& entry : difference.entries) {
    if (entry.verdict != verdict) continue;
    if (max_rows > 0 && count >= max_rows) {
      remaining_difference_j += entry.difference_j.value_or(0);
    } else {
      out += table.line(entry);
    }
    ++count;
  }
  if (count == 0) return {};
  if (max_rows > 0 && count > max_rows)
    out += fmt::format("   and {} more, together {} J\n", count - max_rows, signed_number(remaining_difference_j));
  return "\n " + style.bold(fmt::format("{} ({})", heading, count)) + "\n" + out;
}

// The largest changes, if none exceeds the noise; otherwise empty, because other sections list the changes.
std::string largest_changes_in_noise_text(const RunDifference& difference, const Table& table, const TextStyle& style) {
  constexpr std::size_t kMaxRows = 5;
  constexpr double kMinShownChangeFraction = 0.001;  // of the total
  const double min_change_j = kMinShownChangeFraction * (difference.total.a ? difference.total.a->energy_j : 0);
  std::vector<const DifferenceEntry*> rows;
  for (const DifferenceEntry& entry : difference.entries) {
    if (entry.verdict == ChangeVerdict::grew || entry.verdict == ChangeVerdict::shrank) return {};
    if (entry.verdict != ChangeVerdict::within_noise && entry.verdict != ChangeVerdict::unknown) continue;
    if (entry.difference_j && std::abs(*entry.difference_j) >= min_change_j) rows.push_back(&entry);
  }
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const DifferenceEntry* entry) { return std::abs(*entry->difference_j); });
  if (rows.size() > kMaxRows) rows.resize(kMaxRows);
  std::string out;
  for (const DifferenceEntry* entry : rows) out += table.line(*entry);
  return out.empty() ? out : "\n " + style.bold("Largest changes, none beyond the noise") + "\n" + out;
}

std::string hidden_entries_text(const RunDifference& difference) {
  std::size_t noise = 0;
  std::size_t unknown = 0;
  double noise_j = 0;
  for (const DifferenceEntry& entry : difference.entries) {
    if (entry.verdict == ChangeVerdict::unknown) ++unknown;
    if (entry.verdict != ChangeVerdict::within_noise) continue;
    ++noise;
    noise_j += entry.difference_j.value_or(0);
  }
  std::string out = fmt::format("\n Within the noise: {} {}, together {} J\n", noise, noise == 1 ? "entry" : "entries",
                                signed_number(noise_j));
  if (unknown > 0) out += fmt::format(" Unknown uncertainty: {} entries\n", unknown);
  return out;
}

// By operator: causes of the difference, the largest part first.
std::string difference_causes_text(const RunDifference& difference, const TextStyle& style) {
  if (difference.causes.empty()) return {};
  std::string out = "\n " + style.bold("Causes, by their part of the difference") + "\n";
  for (const DifferenceCause& cause : difference.causes) {
    const std::string groups = cause.paths.size() > 1 ? fmt::format(" ({} groups)", cause.paths.size()) : std::string();
    const std::string change_text = fmt::format("{} J", signed_number(cause.difference_j));
    out += wrap_text(" ", fmt::format("{}  {}: {}{}", change_text, cause.code, printable(cause.text), groups),
                     style.columns);
  }
  return out;
}

// Idle energy of GPUs by cause; amounts below 0.5 % of the total are left out.
std::string idle_differences_text(const RunDifference& difference, const TextStyle& style) {
  constexpr double kMinMentionedIdleFraction = 0.005;
  const auto total_j = [](const std::optional<ComparedEnergy>& side) { return side ? side->energy_j : 0; };
  const double min_energy_j =
      kMinMentionedIdleFraction * std::max(total_j(difference.total.a), total_j(difference.total.b));
  std::string out;
  for (const IdleDifference& idle_difference : difference.idle) {
    if (is_cpu_device(idle_difference.device) ||
        std::max(idle_difference.energy_a_j, idle_difference.energy_b_j) < min_energy_j)
      continue;
    out += fmt::format(" {:>{}} {:>{}}  {}, {}\n", format_number(idle_difference.energy_a_j), kNumberWidth,
                       format_number(idle_difference.energy_b_j), kNumberWidth, idle_difference.device,
                       idle_cause_words(idle_difference.cause));
  }
  if (out.empty()) return {};
  const std::string head = fmt::format(" {:>{}} {:>{}}", "A", kNumberWidth, "B", kNumberWidth);
  return "\n " + style.bold("Idle GPUs, by what they waited for") + "\n" + style.dimmed(head) + "\n" + out;
}

// In joules where there is no relative change, because A used no energy.
std::string total_change_text(const DifferenceEntry& total) {
  if (total.relative_change) return relative_change_text(total);
  return total.difference_j ? fmt::format("{} J", signed_number(*total.difference_j)) : "unknown";
}

std::string total_energy_sentence(const RunDifference& difference) {
  const DifferenceEntry& total = difference.total;
  const std::string change_text = total_change_text(total);
  switch (total.verdict) {
    case ChangeVerdict::grew:
      return fmt::format("B uses more energy: {}, beyond the noise.", change_text);
    case ChangeVerdict::shrank:
      return fmt::format("B uses less energy: {}, beyond the noise.", change_text);
    default:
      return fmt::format("A and B do not differ beyond the noise ({}).", change_text);
  }
}

constexpr double kMaxUsableDetectableChange =
    1;  // a doubling; if no smaller change is detectable, the energies are unusable

std::string short_percent_text(double share) {
  return share < 0.1 ? fmt::format("{:.2g} %", 100 * share) : fmt::format("{:.0f} %", 100 * share);
}

// "... The smallest detectable change is 8.7 %; with 3 recordings each 3.9 %, with 5 recordings each 2.8 %."
std::string detectable_change_sentence(const RunDifference& difference) {
  if (!difference.smallest_detectable_change) return {};
  const RunVariation& variation = difference.variation;
  const std::size_t recording_count_a = difference.a.recordings.size();
  const std::size_t recording_count_b = difference.b.recordings.size();
  std::string out;
  if (recording_count_a + recording_count_b <= 2) {
    out =
        fmt::format("With one recording each, the run-to-run standard deviation is assumed to be {} ({}).",
                    short_percent_text(variation.prior_sd), variation.is_user_prior ? "from --run-sd" : "set --run-sd");
  } else {
    out = fmt::format("The run-to-run standard deviation is {} (from {} and {} recordings and a prior of {}).",
                      short_percent_text(variation.sd), recording_count_a, recording_count_b,
                      short_percent_text(variation.prior_sd));
  }
  if (*difference.smallest_detectable_change >= kMaxUsableDetectableChange) {
    if (difference.total.verdict != ChangeVerdict::within_noise) return out;
    // Estimates of one machine are compared without the error that they share: then the steps vary too much.
    const bool is_uncertain_by_estimate = (difference.a.is_estimated || difference.b.is_estimated) &&
                                          !difference.diagnostics.contains("estimates_compared");
    out += fmt::format(" The energies are too uncertain to compare{}: not even a doubling could be detected.",
                       is_uncertain_by_estimate ? ", because they are estimated" : "");
    return out;
  }
  out +=
      fmt::format(" The smallest detectable change is {}", short_percent_text(*difference.smallest_detectable_change));
  std::string detectable_changes_text;
  for (const DetectableChange& detectable_change : difference.detectable_changes) {
    if (detectable_change.recordings <= std::max(recording_count_a, recording_count_b)) continue;
    detectable_changes_text +=
        fmt::format("{} with {} recordings each {}", detectable_changes_text.empty() ? ";" : ",",
                    detectable_change.recordings, short_percent_text(detectable_change.relative_change));
  }
  return out + detectable_changes_text + ".";
}

std::string excluded_steps_sentence(std::string_view side_letter, const ComparedRun& run) {
  std::size_t warm_up_step_count = 0;
  std::size_t outlier_step_count = 0;
  double time_s = 0;
  double energy_j = 0;
  for (const ComparedRecording& recording : run.recordings) {
    if (!recording.exclusion) return {};
    warm_up_step_count += recording.exclusion->warm_up_steps;
    outlier_step_count += recording.exclusion->outlier_steps;
    time_s += recording.exclusion->time_s;
    energy_j += recording.exclusion->energy_j.value_or(0);
  }
  if (run.recordings.empty()) return {};
  std::string excluded_parts = "start-up";
  const std::string_view sum = run.recordings.size() > 1 ? " in all" : "";
  if (warm_up_step_count > 0)
    excluded_parts +=
        fmt::format(", {} warm-up {}{}", warm_up_step_count, warm_up_step_count == 1 ? "step" : "steps", sum);
  if (outlier_step_count > 0)
    excluded_parts +=
        fmt::format(", {} {} of unusual energy", outlier_step_count, outlier_step_count == 1 ? "step" : "steps");
  excluded_parts += run.recordings.size() > 1 ? " and the last step of each" : " and the last step";
  return fmt::format("Excluded from {}: {} ({}, {} J).", side_letter, excluded_parts, duration_text(time_s),
                     format_number(energy_j, 3));
}

std::string compared_part_text(const RunDifference& difference) {
  if (!difference.is_steady) return "Whole runs are compared, including start-up and shutdown.";
  return fmt::format("{} {} --whole-run includes them.", excluded_steps_sentence("A", difference.a),
                     excluded_steps_sentence("B", difference.b));
}

std::string failure_threshold_sentence(const RunDifference& difference) {
  if (!difference.failure_threshold) return {};
  return fmt::format(" {}: --fail-over {}% fails if the total grows by more than that and beyond the noise.",
                     difference.failed ? "Failed" : "Passed", fmt::format("{:g}", 100 * *difference.failure_threshold));
}

}  // namespace

std::string diff_text(const RunDifference& difference, std::size_t max_rows, const TextStyle& style) {
  const Table table(difference, style);
  const std::string unit = difference.per == "run" ? "J" : "J/" + difference.per;
  std::string out = "\n " +
                    style.bold(fmt::format("Energy changes by {}: joules per {}, {}", difference.by, difference.per,
                                           difference.is_steady ? "steady state" : "whole runs")) +
                    "\n";
  out += compared_run_line("A", difference.a, difference.per, style) +
         compared_run_line("B", difference.b, difference.per, style) + "\n";
  out += table.header() + table.line(difference.total);
  out +=
      "\n" + wrap_text(" ", total_energy_sentence(difference) + failure_threshold_sentence(difference), style.columns);
  if (const std::string noise = detectable_change_sentence(difference); !noise.empty())
    out += wrap_text(" ", noise, style.columns);
  out += wrap_text(" ", compared_part_text(difference), style.columns);
  out += difference_causes_text(difference, style);
  constexpr std::array<std::pair<ChangeVerdict, std::string_view>, 4> kVerdictSections = {
      {{ChangeVerdict::grew, "Grew"},
       {ChangeVerdict::shrank, "Shrank"},
       {ChangeVerdict::appeared, "New in B"},
       {ChangeVerdict::gone, "Only in A"}}};
  for (const auto& [verdict, heading] : kVerdictSections)
    out += verdict_section_text(difference, verdict, heading, max_rows, table, style);
  out += largest_changes_in_noise_text(difference, table, style) + hidden_entries_text(difference) +
         idle_differences_text(difference, style);
  const std::string notes = diagnostics_text(difference.diagnostics);
  if (!notes.empty()) out += "\n" + notes;
  return out + "\n";
}

}  // namespace joulemap::report

// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/comparison_diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace joulemap::attribution {
namespace {

constexpr double kMaxRelativeUnitDifference = 0.05;  // relative difference, above which start-up has a different weight
constexpr double kMinIdleEnergyFraction = 0.3;       // fraction of the energy that idle GPUs use
constexpr std::size_t kMinRecordingsPerSide = 3;     // on each side, to estimate the variation between runs

double units_per_recording(const ComparedRun& side) {
  return side.units / static_cast<double>(std::max<std::size_t>(side.recordings.size(), 1));
}

void add_unit_and_step_diagnostics(RunDifference& difference, bool is_whole_run_requested) {
  const double units_a = units_per_recording(difference.a);
  const double units_b = units_per_recording(difference.b);
  if (difference.per != "run" && std::abs(units_b / units_a - 1) > kMaxRelativeUnitDifference) {
    difference.diagnostics.add(
        {"units_differ", 1,
         fmt::format(
             "A has {:.0f} {}s and B has {:.0f}: start-up energy is included and has a different weight in each",
             units_a, difference.per, units_b),
         "record the same number in both"});
  }
  if (!difference.a.mean_step_half_width || !difference.b.mean_step_half_width) {
    difference.diagnostics.add(
        {"scatter_unknown", 1,
         "too few steps to estimate their variation: the noise within a run is that of its sensors",
         "compare longer runs"});
  }
  if (is_whole_run_requested || difference.per == "run" || difference.per == "epoch") return;
  difference.diagnostics.add({"no_steady_state", 1,
                              "a recording has fewer than 12 steps: whole runs are compared, including start-up",
                              "mark steps with jm.step(), or record more steps"});
}

void add_unsettled_run_diagnostics(RunDifference& difference, std::string_view side_letter, const ComparedRun& side) {
  for (const ComparedRecording& recording : side.recordings) {
    if (!recording.exclusion || recording.exclusion->is_settled) continue;
    difference.diagnostics.add(
        {"not_settled", 1,
         fmt::format("{}: the energy of a step still changes in the second half of {}", side_letter, recording.input),
         "record for longer"});
  }
}

// Fraction of the energy that GPUs used while idle; empty if other domains are counted.
std::optional<double> idle_gpu_energy_fraction(const ReportResult& rows) {
  double total_j = 0;
  for (const DomainEnergy& domain : rows.domains) {
    if (!domain.is_counted || !domain.joules || domain.provenance != Provenance::measured) continue;
    if (domain.device_model.empty()) return std::nullopt;
    total_j += *domain.joules;
  }
  if (!rows.idle_j || total_j <= 0) return std::nullopt;
  return *rows.idle_j / total_j;
}

// A command that did not end well did only a part of its work.
void add_failed_command_diagnostic(RunDifference& difference, std::string_view side_letter, const ReportResult& rows) {
  std::string end;
  if (rows.signal) {
    end = fmt::format("was killed by signal {}", *rows.signal);
  } else if (rows.exit_code.value_or(0) != 0) {
    end = fmt::format("failed with exit code {}", *rows.exit_code);
  } else {
    return;
  }
  const std::string input = rows.inputs.empty() ? std::string("a recording") : rows.inputs.front();
  difference.diagnostics.add(
      {"command_failed", 1,
       fmt::format("{}: the command of {} {}: the comparison covers what it did until then", side_letter, input, end),
       "record a run that ends well"});
}

}  // namespace

void add_host_waiting_diagnostic(RunDifference& difference, std::span<const RunReports> a,
                                 std::span<const RunReports> b) {
  if (std::min(a.size(), b.size()) >= kMinRecordingsPerSide) return;
  double max_idle_energy_fraction = 0;
  for (const auto& side : {a, b}) {
    for (const RunReports& run : side)
      max_idle_energy_fraction = std::max(max_idle_energy_fraction, idle_gpu_energy_fraction(run.rows).value_or(0));
  }
  if (max_idle_energy_fraction <= kMinIdleEnergyFraction) return;
  difference.diagnostics.add(
      {"waits_for_host", 1,
       fmt::format("{:.0f} % of the energy is idle GPU energy: the host limits such programs, and on shared machines "
                   "the host's speed varies more between runs than the prior assumes",
                   100 * max_idle_energy_fraction),
       "record several runs of each: joulemap diff B1 B2 B3 --baseline A1 A2 A3, or set --run-sd"});
}

void add_estimate_diagnostic(RunDifference& difference) {
  difference.diagnostics.add(
      {"estimates_compared", 1,
       "all energies are estimates from CPU time, of the commands alone: relative changes are more certain than joules",
       "to compare measured energies, run joulemap doctor"});
}

void add_unequal_load_diagnostic(RunDifference& difference) {
  difference.diagnostics.add(
      {"unequal_load", 1,
       "other processes used this machine much more during some of the recordings: the same work then takes more CPU "
       "time, and its estimate is larger",
       "stop other programs, or record A and B alternately, several times each"});
}

void add_recording_diagnostics(RunDifference& difference, std::span<const RunReports> a,
                               std::span<const RunReports> b) {
  for (const auto& [side_letter, side] : {std::pair("A", a), std::pair("B", b)}) {
    for (const RunReports& run : side) {
      for (Diagnostic note : run.rows.diagnostics.list()) {
        if (note.code == "counts_unknown") continue;  // a comparison shows no calls
        note.message = fmt::format("{}: {}", side_letter, note.message);
        difference.diagnostics.add(std::move(note));
      }
      add_failed_command_diagnostic(difference, side_letter, run.rows);
    }
  }
}

void add_comparison_limit_diagnostics(RunDifference& difference, const std::set<std::string>& domains,
                                      bool is_whole_run_requested) {
  if (!domains.empty()) {
    difference.diagnostics.add(
        {"domains_differ", domains.size(),
         fmt::format("not all recordings measured {}: excluded from the total", fmt::join(domains, ", ")),
         "run joulemap doctor on the machines that did not measure them"});
  }
  if (!difference.is_steady) add_unit_and_step_diagnostics(difference, is_whole_run_requested);
  add_unsettled_run_diagnostics(difference, "A", difference.a);
  add_unsettled_run_diagnostics(difference, "B", difference.b);
  if (!difference.failure_threshold ||
      *difference.failure_threshold >= difference.smallest_detectable_change.value_or(0))
    return;
  difference.diagnostics.add(
      {"gate_below_noise", 1,
       fmt::format("--fail-over {:g}% is below the {:.1f} % that this comparison can detect",
                   100 * *difference.failure_threshold, 100 * *difference.smallest_detectable_change),
       "record several runs of each: joulemap diff B1 B2 B3 --baseline A1 A2 A3"});
}

}  // namespace joulemap::attribution

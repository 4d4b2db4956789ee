// SPDX-License-Identifier: Apache-2.0
#include "attribution/comparison_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace joulemap::attribution {
namespace {

constexpr double kUnitsDiffer = 0.05;  // more weighs start-up differently

double units_of_each(const ComparedRun& side) {
  return side.units / static_cast<double>(std::max<std::size_t>(side.recordings.size(), 1));
}

void note_whole_runs(RunDifference& difference, bool is_asked) {
  const double a = units_of_each(difference.a);
  const double b = units_of_each(difference.b);
  if (difference.per != "run" && std::abs(b / a - 1) > kUnitsDiffer) {
    difference.diagnostics.add(
        {"units_differ", 1,
         fmt::format("A has {:.0f} {}s and B {:.0f}: start-up, which is in the sums, weighs differently", a,
                     difference.per, b),
         "record as many of both"});
  }
  if (!difference.a.scatter || !difference.b.scatter) {
    difference.diagnostics.add({"scatter_unknown", 1,
                                "too few steps to see how much they vary: the noise within a run is that of its sensors",
                                "compare longer runs"});
  }
  if (is_asked || difference.per == "run" || difference.per == "epoch") return;
  difference.diagnostics.add({"no_steady_state", 1,
                              "a recording has fewer than 12 steps: whole runs are compared, start-up included",
                              "mark steps (docs/capture.md), or record more of them"});
}

void note_unsettled(RunDifference& difference, std::string_view letter, const ComparedRun& side) {
  for (const ComparedRecording& recording : side.recordings) {
    if (!recording.left_out || recording.left_out->is_settled) continue;
    difference.diagnostics.add(
        {"not_settled", 1,
         fmt::format("{}: the energy of a step still changes in the second half of {}", letter, recording.input),
         "record for longer"});
  }
}

}  // namespace

void note_diagnostics(RunDifference& difference, std::span<const RunReports> a, std::span<const RunReports> b) {
  for (const auto& [letter, side] : {std::pair("A", a), std::pair("B", b)}) {
    for (const RunReports& run : side) {
      for (Diagnostic note : run.rows.diagnostics.list()) {
        note.message = fmt::format("{}: {}", letter, note.message);
        difference.diagnostics.add(std::move(note));
      }
    }
  }
}

void note_limits(RunDifference& difference, const std::set<std::string>& domains, bool is_asked) {
  if (!domains.empty()) {
    difference.diagnostics.add({"domains_differ", domains.size(),
                                fmt::format("not all recordings measured {}: left out of the total",
                                            fmt::join(domains, ", ")),
                                "joulemap doctor on the machine of the others shows why"});
  }
  if (!difference.is_steady) note_whole_runs(difference, is_asked);
  note_unsettled(difference, "A", difference.a);
  note_unsettled(difference, "B", difference.b);
  if (!difference.fail_over || *difference.fail_over >= difference.smallest_change.value_or(0)) return;
  difference.diagnostics.add(
      {"gate_below_noise", 1,
       fmt::format("--fail-over {:g}% asks for less than the {:.1f} % that this comparison can establish",
                   100 * *difference.fail_over, 100 * *difference.smallest_change),
       "record several of each: joulemap diff B1 B2 B3 --baseline A1 A2 A3"});
}

}  // namespace joulemap::attribution

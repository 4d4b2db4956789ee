// SPDX-License-Identifier: Apache-2.0
//
// Compares the output of diff with the texts in tests/golden.
#include <gtest/gtest.h>

#include "report/json/diff_json.h"
#include "report/text/diff_text.h"
#include "support/golden.h"

namespace joulemap::report {
namespace {

DifferenceEntry entry(std::string name, std::optional<double> energy_a_j, std::optional<double> energy_b_j,
                      ChangeVerdict verdict) {
  DifferenceEntry out;
  out.path = {"train", "backward", name};
  out.name = out.display_name = std::move(name);
  out.device = "gpu0";
  if (energy_a_j) out.a = ComparedEnergy{*energy_a_j, 0.9 * *energy_a_j, 1.1 * *energy_a_j};
  if (energy_b_j) out.b = ComparedEnergy{*energy_b_j, 0.9 * *energy_b_j, 1.1 * *energy_b_j};
  out.difference_j = energy_b_j.value_or(0) - energy_a_j.value_or(0);
  out.low_j = *out.difference_j - 0.1;
  out.high_j = *out.difference_j + 0.1;
  if (energy_a_j) out.relative_change = *out.difference_j / *energy_a_j;
  out.verdict = verdict;
  if (energy_a_j && energy_b_j) out.p_adjusted = verdict == ChangeVerdict::within_noise ? 0.7 : 0.001;
  return out;
}

RunDifference difference() {
  RunDifference out;
  out.by = "layer";
  out.per = "step";
  out.is_steady = true;
  out.entry_confidence = 0.98;
  out.variation = {0.02, 4, false, 0.021, 4};
  out.smallest_detectable_change = 0.091;
  out.detectable_changes = {{1, 0.091}, {3, 0.047}, {5, 0.035}};
  out.a = {{"before.joule"}, {"python", "train.py"}, 330, 0.069, 0.004, false};
  out.a.recordings = {{"before.joule", 343, 330, 20.5, 0.005, SteadyStateExclusion{12, 0, 4.2, 610, true}}};
  out.b = {{"after.joule"}, {"python", "train.py", "--wide"}, 328, 0.075, 0.006, false};
  out.b.recordings = {{"after.joule", 343, 328, 23.1, 0.005, SteadyStateExclusion{13, 1, 4.4, 650, false}}};
  out.domains = {"gpu0"};
  out.total = entry("total", 20.5, 23.1, ChangeVerdict::grew);
  out.total.path = {};
  out.total.device = {};
  out.entries = {entry("layer4.0.conv2", 2, 4.5, ChangeVerdict::grew),
                 entry("layer4.1.conv2", 2, 2.3, ChangeVerdict::grew),
                 entry("head", 1.5, 1, ChangeVerdict::shrank),
                 entry("layer4.2.conv2", {}, 0.4, ChangeVerdict::appeared),
                 entry("pool", 0.3, {}, ChangeVerdict::gone),
                 entry("layer1.0.conv1", 5, 5.02, ChangeVerdict::within_noise)};
  out.entries[0].a->waiting_j = 0.5;
  out.entries[0].b->waiting_j = 1.5;
  out.idle = {
      {IdleCause::data, "gpu0", 0.2, 1.9}, {IdleCause::launch, "gpu0", 2.5, 2.4}, {IdleCause::host, "gpu0", 0, 0.01}};
  out.failure_threshold = 0.05;
  out.failed = true;
  out.diagnostics.add({"not_settled", 1, "B: the energy of a step still changes in the second half of after.joule",
                       "record for longer"});
  return out;
}

TEST(DiffReport, PrintsChangesAsText) {
  expect_golden("diff.txt", diff_text(difference(), 1, {CharacterSet::ascii}));
  expect_golden("diff_wide.txt", diff_text(difference(), 0, {CharacterSet::unicode, 110}));
}

// A comparison of whole runs, with three recordings per side.
RunDifference make_repeated_run_difference() {
  RunDifference out = difference();
  out.is_steady = false;
  out.a.inputs = {"a1.joule", "a2.joule", "a3.joule"};
  out.b.inputs = {"b1.joule", "b2.joule", "b3.joule"};
  for (ComparedRun* side : {&out.a, &out.b}) {
    side->recordings.front().exclusion.reset();
    side->recordings.resize(3, side->recordings.front());
    side->units = 3 * 343;
  }
  out.variation = {0.02, 4, false, 0.012, 8};
  out.smallest_detectable_change = 0.027;
  out.diagnostics = {};
  return out;
}

TEST(DiffReport, PrintsTheCountOfRecordings) {
  expect_golden("diff_repeated.txt", diff_text(make_repeated_run_difference(), 1, {CharacterSet::ascii}));
}

TEST(DiffReport, ListsTheCausesOfADifference) {
  RunDifference operator_difference = difference();
  operator_difference.by = "operator";
  operator_difference.causes = {{"precision", "matmul in float32 in B, in tf32 in A", 2.5, {"matmul"}, {{"a"}, {"b"}}}};
  const std::string text = diff_text(operator_difference, 1, {CharacterSet::ascii});
  EXPECT_NE(text.find("+2.50 J precision: matmul in float32 in B, in tf32 in A (2 groups)"), std::string::npos) << text;
  EXPECT_EQ(diff_text(difference(), 1, {CharacterSet::ascii}).find("Causes"), std::string::npos);
}

TEST(DiffReport, PrintsChangesAsJson) { expect_golden("diff.json", diff_json(difference()) + "\n"); }

}  // namespace
}  // namespace joulemap::report

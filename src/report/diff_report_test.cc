// SPDX-License-Identifier: Apache-2.0
//
// What diff prints, against the texts in tests/golden.
#include <gtest/gtest.h>

#include "report/diff_json.h"
#include "report/diff_text.h"
#include "support/golden.h"

namespace joulemap::report {
namespace {

DifferenceEntry entry(std::string name, std::optional<double> a_j, std::optional<double> b_j, Verdict verdict) {
  DifferenceEntry out;
  out.path = {"train", "backward", name};
  out.name = out.display_name = std::move(name);
  out.device = "gpu0";
  if (a_j) out.a = ComparedEnergy{*a_j, 0.9 * *a_j, 1.1 * *a_j};
  if (b_j) out.b = ComparedEnergy{*b_j, 0.9 * *b_j, 1.1 * *b_j};
  out.difference_j = b_j.value_or(0) - a_j.value_or(0);
  out.low_j = *out.difference_j - 0.1;
  out.high_j = *out.difference_j + 0.1;
  if (a_j) out.relative = *out.difference_j / *a_j;
  out.verdict = verdict;
  return out;
}

RunDifference difference() {
  RunDifference out;
  out.by = "layer";
  out.per = "step";
  out.a = {{"before.joule"}, {"python", "train.py"}, 343, 0.069, 0.004, false};
  out.b = {{"after.joule"}, {"python", "train.py", "--wide"}, 343, 0.075, 0.006, false};
  out.domains = {"gpu0"};
  out.total = entry("total", 20.5, 23.1, Verdict::grew);
  out.total.path = {};
  out.total.device = {};
  out.entries = {
      entry("layer4.0.conv2", 2, 4.5, Verdict::grew), entry("layer4.1.conv2", 2, 2.3, Verdict::grew),
      entry("head", 1.5, 1, Verdict::shrank),         entry("layer4.2.conv2", {}, 0.4, Verdict::appeared),
      entry("pool", 0.3, {}, Verdict::gone),          entry("layer1.0.conv1", 5, 5.02, Verdict::within_noise)};
  out.fail_over = 0.05;
  out.failed = true;
  out.diagnostics.add(
      {"units_differ", 1, "A has 343 steps and B 500: starting up weighs differently", "record as many"});
  return out;
}

TEST(DiffReport, TellsWhatChangedInText) {
  expect_golden("diff.txt", diff_text(difference(), 1, {Characters::ascii}));
  expect_golden("diff_wide.txt", diff_text(difference(), 0, {Characters::unicode, 110}));
}

TEST(DiffReport, TellsWhatChangedInJson) { expect_golden("diff.json", diff_json(difference()) + "\n"); }

}  // namespace
}  // namespace joulemap::report

// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/operator_causes.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace joulemap::attribution {
namespace {

using Path = std::vector<std::string>;

OperatorGroupContent operator_side(Path kernels, std::string precision = {}, Path shapes = {}) {
  OperatorGroupContent out;
  for (std::string& name : kernels) out.kernels.push_back({std::move(name), 1});
  out.precision = std::move(precision);
  out.shapes = std::move(shapes);
  return out;
}

struct GroupSides {
  std::optional<double> energy_a_j;
  std::optional<double> energy_b_j;
  double calls_a = 1;
  double calls_b = 1;
  double time_a_s = 1;
  double time_b_s = 1;
};

DifferenceEntry group(Path path, const GroupSides& sides, OperatorGroupContent a = operator_side({"k"}),
                      OperatorGroupContent b = operator_side({"k"})) {
  DifferenceEntry entry;
  entry.device = "gpu0";
  entry.group = OperatorGroup{
      .kind = path.front(), .phase = path.size() > 1 ? path[1] : "", .a = std::move(a), .b = std::move(b)};
  entry.path = std::move(path);
  if (sides.energy_a_j)
    entry.a = ComparedEnergy{.energy_j = *sides.energy_a_j, .count = sides.calls_a, .time_s = sides.time_a_s};
  if (sides.energy_b_j)
    entry.b = ComparedEnergy{.energy_j = *sides.energy_b_j, .count = sides.calls_b, .time_s = sides.time_b_s};
  entry.difference_j = sides.energy_b_j.value_or(0) - sides.energy_a_j.value_or(0);
  entry.low_j = *entry.difference_j - 0.01;
  entry.high_j = *entry.difference_j + 0.01;
  return entry;
}

RunDifference difference_with_causes(std::vector<DifferenceEntry> entries) {
  RunDifference difference;
  difference.per = "step";
  double energy_a_j = 0;
  double energy_b_j = 0;
  for (const DifferenceEntry& entry : entries) {
    energy_a_j += entry.a ? entry.a->energy_j : 0;
    energy_b_j += entry.b ? entry.b->energy_j : 0;
  }
  difference.total.a = ComparedEnergy{.energy_j = energy_a_j};
  difference.total.b = ComparedEnergy{.energy_j = energy_b_j};
  difference.total.difference_j = energy_b_j - energy_a_j;
  difference.entries = std::move(entries);
  explain_operator_differences(difference);
  return difference;
}

std::string cause_code_of(const DifferenceEntry& entry) {
  return difference_with_causes({entry}).entries.front().group->cause.code;
}
std::string cause_text_of(const DifferenceEntry& entry) {
  return difference_with_causes({entry}).entries.front().group->cause.text;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(OperatorCauses, APrecisionIsReadFromKernels) {
  const DifferenceEntry entry =
      group({"matmul", "forward"}, {1, 5}, operator_side({"tf32"}, "tf32"), operator_side({"sgemm"}, "float32"));
  EXPECT_EQ(cause_code_of(entry), "precision");
  EXPECT_TRUE(contains(cause_text_of(entry), "float32 in B, in tf32 in A")) << cause_text_of(entry);
}

TEST(OperatorCauses, TheSideWithMoreEnergyIsNamed) {
  EXPECT_TRUE(contains(cause_text_of(group({"host copy"}, {5, 1})), "A copies more between host and device"));
  EXPECT_TRUE(contains(cause_text_of(group({"host copy"}, {1, 5})), "B copies more"));
}

TEST(OperatorCauses, RecomputeIsFoundByItsPhase) {
  EXPECT_EQ(cause_code_of(group({"matmul", "recompute"}, {std::nullopt, 5})), "recompute");
}

TEST(OperatorCauses, LargerShapesAreACauseOfTheirOwn) {
  DifferenceEntry entry =
      group({"matmul", "forward"}, {1, 5}, operator_side({"x"}, "", {"16x8x8"}), operator_side({"y"}, "", {"64x8x8"}));
  entry.group->has_different_shapes = true;
  EXPECT_EQ(cause_code_of(entry), "shapes");
  EXPECT_TRUE(contains(cause_text_of(entry), "64x8x8 instead of 16x8x8")) << cause_text_of(entry);
}

TEST(OperatorCauses, MoreLaunchesOfTheSameKernelsAreACause) {
  EXPECT_EQ(cause_code_of(group({"matmul", "forward"}, {1, 2, 4, 8})), "calls");
}

TEST(OperatorCauses, AnotherKernelForTheSameWorkIsACause) {
  const DifferenceEntry entry = group({"convolution", "forward"}, {1, 5}, operator_side({"void winograd<float>(int)"}),
                                      operator_side({"implicit_gemm"}));
  EXPECT_EQ(cause_code_of(entry), "kernel");
  EXPECT_TRUE(contains(cause_text_of(entry), "implicit_gemm in B instead of winograd")) << cause_text_of(entry);
}

TEST(OperatorCauses, TheSameKernelsTakeLongerOrDrawMorePower) {
  EXPECT_EQ(cause_code_of(group({"matmul", "forward"}, {1, 2, 1, 1, 1, 2})), "duration");
  EXPECT_EQ(cause_code_of(group({"matmul", "forward"}, {1, 2})), "power");
}

TEST(OperatorCauses, WorkWithoutCounterpartIsExtra) {
  EXPECT_EQ(cause_code_of(group({"matmul", "forward"}, {std::nullopt, 5})), "extra");
}

TEST(OperatorCauses, LayoutsCopiesAndWaitingAreFoundByTheirKind) {
  EXPECT_EQ(cause_code_of(group({"layout conversion", "forward"}, {std::nullopt, 5})), "layout");
  EXPECT_EQ(cause_code_of(group({"copy", "forward"}, {1, 5})), "copies");
  EXPECT_EQ(cause_code_of(group({"waiting", "synchronization"}, {1, 5})), "waiting");
}

TEST(OperatorCauses, AFusedOperationAndItsPartsHaveOneCause) {
  const RunDifference difference =
      difference_with_causes({group({"elementwise", "forward"}, {std::nullopt, 8, 1, 10}),
                              group({"reduction", "forward"}, {std::nullopt, 3, 1, 4}),
                              group({"normalization", "forward"}, {2, std::nullopt, 2, 1})});
  ASSERT_EQ(difference.causes.size(), 1u);
  EXPECT_EQ(difference.causes.front().code, "unfused");
  EXPECT_NEAR(difference.causes.front().difference_j, 9, 1e-12);
  EXPECT_TRUE(contains(difference.causes.front().text, "B runs 14 kernels per step where A runs 2 fused ones"))
      << difference.causes.front().text;
}

TEST(OperatorCauses, FewerKernelsThatUseMoreEnergyAreNotFused) {
  const RunDifference difference = difference_with_causes(
      {group({"normalization", "backward"}, {2, 8, 15, 5}, operator_side({"channels_last"}), operator_side({"nchw"}))});
  ASSERT_EQ(difference.causes.size(), 1u);
  EXPECT_EQ(difference.causes.front().code, "kernel");
}

TEST(OperatorCauses, ConversionsExplainOtherKernelsOfTheirLayout) {
  const RunDifference difference = difference_with_causes(
      {group({"normalization", "backward"}, {2, 8, 15, 5}, operator_side({"channels_last"}), operator_side({"nchw"})),
       group({"layout conversion", "forward"}, {std::nullopt, 3, 1, 10})});
  ASSERT_EQ(difference.causes.size(), 1u);
  EXPECT_EQ(difference.causes.front().code, "layout");
  EXPECT_NEAR(difference.causes.front().difference_j, 9, 1e-12);
}

TEST(OperatorCauses, PartsOfAttentionIncludeMatrixProducts) {
  const RunDifference difference = difference_with_causes({group({"matmul", "forward", "b"}, {std::nullopt, 4, 1, 2}),
                                                           group({"softmax", "forward"}, {std::nullopt, 3}),
                                                           group({"attention", "forward"}, {2, std::nullopt})});
  ASSERT_EQ(difference.causes.size(), 1u);
  EXPECT_EQ(difference.causes.front().code, "unfused");
}

TEST(OperatorCauses, AnOptimizerWithManyKernelsIsUnfused) {
  EXPECT_EQ(cause_code_of(group({"optimizer", "optimizer"}, {1, 5, 4, 800}, operator_side({"fused_adam"}),
                                operator_side({"elementwise"}))),
            "unfused");
}

TEST(OperatorCauses, NoiseAndSmallDifferencesHaveNoCause) {
  DifferenceEntry noisy_entry = group({"matmul", "forward"}, {1, 2, 1, 2});
  noisy_entry.low_j = -1;
  noisy_entry.high_j = 3;
  EXPECT_EQ(cause_code_of(noisy_entry), "");
  const RunDifference difference =
      difference_with_causes({group({"matmul", "forward"}, {100, 200}), group({"copy", "forward"}, {0.1, 0.2})});
  EXPECT_EQ(difference.entries.back().group->cause.code, "") << "less than 1 % of the total";
}

TEST(OperatorCauses, ManyGroupsWithinTheNoiseExceedItTogether) {
  std::vector<DifferenceEntry> entries;
  for (int i = 0; i < 16; ++i) {
    entries.push_back(group({"copy", "forward", std::to_string(i)}, {1, 2}));
    entries.back().low_j = -0.5;
    entries.back().high_j = 2.5;  // 1.5 J on either side, and 6 J for the sum of 16 J
  }
  const RunDifference difference = difference_with_causes(entries);
  ASSERT_EQ(difference.causes.size(), 1u);
  EXPECT_EQ(difference.causes.front().paths.size(), 16u);
}

TEST(OperatorCauses, WaitingWithinTheNoiseHasNoCause) {
  std::vector<DifferenceEntry> entries;
  for (const char* cause : {"launch", "host", "data", "between"}) {
    entries.push_back(group({"waiting", cause}, {1, 2}));
    entries.back().low_j = -0.5;
    entries.back().high_j = 2.5;
  }
  EXPECT_TRUE(difference_with_causes(entries).causes.empty());
}

TEST(OperatorCauses, EqualKernelsWithinTheNoiseHaveNoCause) {
  std::vector<DifferenceEntry> entries;
  for (int i = 0; i < 16; ++i) {
    entries.push_back(group({"matmul", "forward", std::to_string(i)}, {1, 2}));
    entries.back().low_j = -0.5;
    entries.back().high_j = 2.5;
  }
  EXPECT_TRUE(difference_with_causes(entries).causes.empty());
}

TEST(OperatorCauses, TheCauseOfTheLargestPartComesFirst) {
  const RunDifference difference =
      difference_with_causes({group({"copy", "forward"}, {1, 5}), group({"waiting", "data"}, {1, 50}),
                              group({"copy", "backward"}, {1, 20}), group({"host copy"}, {90, 10})});
  ASSERT_EQ(difference.causes.size(), 3u);
  EXPECT_EQ(difference.total.difference_j.value_or(0), -8) << "B uses less";
  EXPECT_EQ(difference.causes[0].code, "host_copies");
  EXPECT_EQ(difference.causes[1].code, "copies");
  EXPECT_NEAR(difference.causes[1].difference_j, 23, 1e-12);
  EXPECT_EQ(difference.causes[1].paths.size(), 2u);
  EXPECT_EQ(difference.causes[2].code, "waiting");
}

}  // namespace
}  // namespace joulemap::attribution

// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/graph_kernels.h"

#include <gtest/gtest.h>

namespace joulemap::ingest {
namespace {

using Names = std::vector<std::string_view>;

TEST(GraphKernels, RepeatedKernelsBelongToConsecutiveInstructions) {
  const Names schedule = {"wrapped_transpose", "gemm.7", "add.3", "gemm.9", "add.4", "gemm.10", "add.5"};
  const auto match =
      match_graph_to_schedule(Names{"gemm_7", "add_3", "gemm_7", "add_3", "gemm_7", "add_3"}, schedule, 0);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->instruction_by_kernel, (Names{"gemm.7", "add.3", "gemm.9", "add.4", "gemm.10", "add.5"}));
  EXPECT_EQ(match->schedule_end_index, 7u);
}

TEST(GraphKernels, EqualGraphsFollowEachOther) {
  const Names schedule = {"gemm.1", "add.1", "attention", "gemm.2", "add.2", "attention.1"};
  const auto first_match = match_graph_to_schedule(Names{"gemm_1", "add_1"}, schedule, 0);
  ASSERT_TRUE(first_match);
  const auto second_match =
      match_graph_to_schedule(Names{"gemm_1", "add_1"}, schedule, first_match->schedule_end_index);
  ASSERT_TRUE(second_match);
  EXPECT_EQ(second_match->instruction_by_kernel, (Names{"gemm.2", "add.2"}));
}

TEST(GraphKernels, LibraryKernelsBelongToTheInstructionBetweenTheirNeighbours) {
  const Names schedule = {"fusion", "cudnn-conv.1", "fusion.2"};
  const auto match =
      match_graph_to_schedule(Names{"fusion", "void cutlass<float>", "sm80_xmma", "fusion_2"}, schedule, 0);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->instruction_by_kernel, (Names{"fusion", "cudnn-conv.1", "cudnn-conv.1", "fusion.2"}));
}

TEST(GraphKernels, DoesNotMatchASequenceOutsideTheSchedule) {
  const Names schedule = {"gemm.1", "add.1", "mul.1"};
  EXPECT_FALSE(match_graph_to_schedule(Names{"add_1", "gemm_1"}, schedule, 0));
  EXPECT_FALSE(match_graph_to_schedule(Names{"gemm_1", "add_1"}, schedule, 1));
  EXPECT_FALSE(match_graph_to_schedule(Names{"sm80_xmma", "cutlass"}, schedule, 0))
      << "libraries' alone could be anywhere";
  EXPECT_FALSE(match_graph_to_schedule({}, schedule, 0));
  EXPECT_FALSE(match_graph_to_schedule(Names{"x"}, {}, 0));
}

TEST(GraphKernels, StemsOfInstructionsAndKernelsAreEqual) {
  EXPECT_EQ(name_without_number("gemm_fusion_dot.8"), name_without_number("gemm_fusion_dot_8"));
  EXPECT_EQ(name_without_number("wrapped_reduce-window"), name_without_number("wrapped_reduce_window"));
  EXPECT_EQ(name_without_number("loop_add_fusion"), name_without_number("loop_add_fusion_2"));
}

}  // namespace
}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
#include "advise/advise.h"

#include <gtest/gtest.h>

namespace joulemap::advise {
namespace {

ReportRow row(std::vector<std::string> path, double energy_j, std::uint64_t count = 100) {
  ReportRow made;
  made.name = path.back();
  made.path = std::move(path);
  made.device = "gpu0";
  made.count = count;
  made.time_s = energy_j / 500;
  made.energy_j = energy_j;
  made.low_j = 0.9 * energy_j;
  made.high_j = 1.1 * energy_j;
  return made;
}

IdleEntry idle(IdleCause cause, double energy_j) {
  return {.cause = cause,
          .path = {},
          .device = "gpu0",
          .time_s = energy_j / 100,
          .energy_j = energy_j,
          .low_j = 0.8 * energy_j,
          .high_j = 1.2 * energy_j,
          .in_rows = false};
}

constexpr ExaminedPart kPart{.is_steady = true, .steps = 100};

struct Recorded {
  ReportResult by_layer;
  ReportResult by_op;
  ReportResult by_kernel;
  Recorded() {
    by_layer.by = "layer";
    by_layer.elapsed_s = 20;
    by_layer.rows = {row({"train", "forward", "conv"}, 4000), row({"train", "backward", "conv"}, 5000)};
    by_kernel.by = "kernel";
    by_kernel.rows = {row({"sm90_xmma_gemm_bf16bf16_bf16f32_f32"}, 9000)};
  }
  std::vector<Finding> findings() const { return advise({by_layer, by_kernel, by_op, kPart}).findings; }
};

TEST(Advise, AHealthyTrainingHasNoFinding) {
  Recorded run;
  run.by_layer.idle = {idle(IdleCause::startup, 600), idle(IdleCause::launch, 40), idle(IdleCause::shutdown, 100)};
  EXPECT_TRUE(run.findings().empty());
}

TEST(Advise, WaitingForDataIsAFindingWithJoulesSecondsAndARange) {
  Recorded run;
  run.by_layer.idle = {idle(IdleCause::data, 1000)};
  const std::vector<Finding> findings = run.findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule, "data_loading");
  EXPECT_NE(findings[0].change.find("num_workers"), std::string::npos);
  EXPECT_DOUBLE_EQ(findings[0].energy_j, 1000);
  EXPECT_LT(findings[0].low_j, findings[0].saves_j);
  EXPECT_LT(findings[0].saves_j, findings[0].high_j);
  EXPECT_GT(findings[0].high_j, 1200);
  EXPECT_GT(findings[0].saves_s.value_or(0), 0);
}

TEST(Advise, TheLargestSavingIsFirst) {
  Recorded run;
  run.by_layer.idle = {idle(IdleCause::data, 500), idle(IdleCause::launch, 3000)};
  const std::vector<Finding> findings = run.findings();
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].rule, "launch_bound");
}

TEST(Advise, LayoutConversionsAndFullPrecisionAreFoundByTheNamesOfKernels) {
  Recorded run;
  run.by_kernel.rows = {row({"_ZN5cudnn16nchwToNhwcKernelIfff"}, 1000), row({"ampere_sgemm_128x64_nn"}, 8000)};
  std::vector<std::string_view> rules;
  for (const Finding& finding : run.findings()) rules.push_back(finding.rule);
  EXPECT_EQ(rules, (std::vector<std::string_view>{"full_precision", "memory_layout"}));
}

TEST(Advise, AttentionFromSingleOperationsIsAFindingAndAClassifierWithSoftmaxIsNot) {
  Recorded run;
  run.by_op.rows = {row({"train", "forward", "attention", "torch.softmax"}, 1500),
                    row({"train", "forward", "attention", "torch.Tensor.matmul"}, 1000),
                    row({"train", "backward", "attention", "SoftmaxBackward0"}, 500),
                    row({"train", "forward", "attention.out", "torch.nn.functional.linear"}, 3000),
                    row({"train", "forward", "head", "torch.softmax"}, 2000)};
  run.by_layer.rows = {row({"train", "forward", "attention"}, 2500), row({"train", "backward", "attention"}, 500),
                       row({"train", "forward", "attention.out"}, 3000), row({"train", "forward", "head"}, 2000)};
  const std::vector<Finding> findings = run.findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule, "unfused_attention");
  EXPECT_DOUBLE_EQ(findings[0].energy_j, 3000);
}

TEST(Advise, WaitingForTheHostIsDueToSynchronizationsIfValuesAreReadInEveryStep) {
  Recorded run;
  run.by_layer.idle = {idle(IdleCause::host, 1000), idle(IdleCause::synchronization, 500)};
  ASSERT_EQ(run.findings().size(), 1u);
  EXPECT_EQ(run.findings()[0].rule, "host_code");
  EXPECT_DOUBLE_EQ(run.findings()[0].energy_j, 1000);
  run.by_kernel.rows.push_back(row({"DtoH"}, 1, 300));
  ASSERT_EQ(run.findings().size(), 1u);
  EXPECT_EQ(run.findings()[0].rule, "synchronization");
  EXPECT_DOUBLE_EQ(run.findings()[0].energy_j, 1500);
}

TEST(Advise, CopiesBetweenHostAndGpuAreAFindingWhateverTheirSource) {
  for (const char* name : {"HtoD", "Memcpy HtoD (Pageable -> Device)"}) {
    Recorded run;
    run.by_kernel.rows.push_back(row({name}, 1000));
    ASSERT_EQ(run.findings().size(), 1u) << name;
    EXPECT_EQ(run.findings()[0].rule, "host_copies");
  }
}

TEST(Advise, KernelsOfProbingAndOfOthersDoNotCount) {
  Recorded run;
  run.by_kernel.rows = {row({"probe"}, 1000), row({"background"}, 8000)};
  run.by_kernel.rows[0].name = "nchwToNhwc";
  run.by_kernel.rows[1].name = "ampere_sgemm";
  EXPECT_TRUE(run.findings().empty());
}

TEST(Advise, AnOptimizerOfManyKernelsIsAFindingAndAFusedOneIsNot) {
  Recorded run;
  run.by_layer.rows.push_back(row({"train", "optimizer", "AdamW"}, 900, 100 * 600));
  ASSERT_EQ(run.findings().size(), 1u);
  EXPECT_EQ(run.findings()[0].rule, "unfused_optimizer");
  run.by_layer.rows.back().count = 100 * 6;
  EXPECT_TRUE(run.findings().empty());
}

TEST(Advise, WithoutEnergyThereIsNothingToSay) {
  Recorded run;
  for (ReportRow& one : run.by_layer.rows) one.energy_j.reset();
  EXPECT_EQ(advise({run.by_layer, run.by_kernel, run.by_op, kPart}).energy_j, std::nullopt);
  EXPECT_TRUE(run.findings().empty());
}

}  // namespace
}  // namespace joulemap::advise

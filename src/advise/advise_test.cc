// SPDX-License-Identifier: Apache-2.0
#include "advise/advise.h"

#include <gtest/gtest.h>

namespace joulemap::advise {
namespace {

ReportRow row(std::vector<std::string> path, double energy_j, std::uint64_t count = 100) {
  ReportRow report_row;
  report_row.name = path.back();
  report_row.path = std::move(path);
  report_row.device = "gpu0";
  report_row.count = count;
  report_row.time_s = energy_j / 500;
  report_row.energy_j = energy_j;
  report_row.low_j = 0.9 * energy_j;
  report_row.high_j = 1.1 * energy_j;
  return report_row;
}

IdleEntry idle(IdleCause cause, double energy_j) {
  return {.cause = cause,
          .path = {},
          .device = "gpu0",
          .time_s = energy_j / 100,
          .energy_j = energy_j,
          .low_j = 0.8 * energy_j,
          .high_j = 1.2 * energy_j,
          .is_included_in_rows = false};
}

constexpr ExaminedRunPart kExaminedRunPart{.is_steady = true, .steps = 100};

struct AdviceTestReports {
  ReportResult layer_report;
  ReportResult op_report;
  ReportResult kernel_report;
  AdviceTestReports() {
    layer_report.by = "layer";
    layer_report.elapsed_s = 20;
    layer_report.rows = {row({"train", "forward", "conv"}, 4000), row({"train", "backward", "conv"}, 5000)};
    kernel_report.by = "kernel";
    kernel_report.rows = {row({"sm90_xmma_gemm_bf16bf16_bf16f32_f32"}, 9000)};
  }
  std::vector<Finding> findings() const {
    return advise({layer_report, kernel_report, op_report, kExaminedRunPart}).findings;
  }
};

TEST(Advise, AHealthyTrainingHasNoFinding) {
  AdviceTestReports run;
  run.layer_report.idle = {idle(IdleCause::startup, 600), idle(IdleCause::launch, 40), idle(IdleCause::shutdown, 100)};
  EXPECT_TRUE(run.findings().empty());
}

TEST(Advise, WaitingForDataIsAFindingWithJoulesSecondsAndARange) {
  AdviceTestReports run;
  run.layer_report.idle = {idle(IdleCause::data, 1000)};
  const std::vector<Finding> findings = run.findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule, "data_loading");
  EXPECT_NE(findings[0].change.find("num_workers"), std::string::npos);
  EXPECT_DOUBLE_EQ(findings[0].energy_j, 1000);
  EXPECT_LT(findings[0].low_j, findings[0].saved_energy_j);
  EXPECT_LT(findings[0].saved_energy_j, findings[0].high_j);
  EXPECT_GT(findings[0].high_j, 1200);
  EXPECT_GT(findings[0].saved_time_s.value_or(0), 0);
}

TEST(Advise, TheLargestSavingIsFirst) {
  AdviceTestReports run;
  run.layer_report.idle = {idle(IdleCause::data, 500), idle(IdleCause::launch, 3000)};
  const std::vector<Finding> findings = run.findings();
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].rule, "launch_bound");
}

TEST(Advise, LayoutConversionsAndFullPrecisionAreFoundByTheNamesOfKernels) {
  AdviceTestReports run;
  run.kernel_report.rows = {row({"_ZN5cudnn16nchwToNhwcKernelIfff"}, 1000), row({"ampere_sgemm_128x64_nn"}, 8000)};
  std::vector<std::string_view> rules;
  for (const Finding& finding : run.findings()) rules.push_back(finding.rule);
  EXPECT_EQ(rules, (std::vector<std::string_view>{"full_precision", "memory_layout"}));
}

TEST(Advise, AttentionFromSingleOperationsIsAFindingAndAClassifierWithSoftmaxIsNot) {
  AdviceTestReports run;
  run.op_report.rows = {row({"train", "forward", "attention", "torch.softmax"}, 1500),
                        row({"train", "forward", "attention", "torch.Tensor.matmul"}, 1000),
                        row({"train", "backward", "attention", "SoftmaxBackward0"}, 500),
                        row({"train", "forward", "attention.out", "torch.nn.functional.linear"}, 3000),
                        row({"train", "forward", "head", "torch.softmax"}, 2000)};
  run.layer_report.rows = {row({"train", "forward", "attention"}, 2500), row({"train", "backward", "attention"}, 500),
                           row({"train", "forward", "attention.out"}, 3000), row({"train", "forward", "head"}, 2000)};
  const std::vector<Finding> findings = run.findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule, "unfused_attention");
  EXPECT_DOUBLE_EQ(findings[0].energy_j, 3000);
}

TEST(Advise, WaitingForTheHostIsDueToSynchronizationsIfValuesAreReadInEveryStep) {
  AdviceTestReports run;
  run.layer_report.idle = {idle(IdleCause::host, 1000), idle(IdleCause::synchronization, 500)};
  ASSERT_EQ(run.findings().size(), 1u);
  EXPECT_EQ(run.findings()[0].rule, "host_code");
  EXPECT_DOUBLE_EQ(run.findings()[0].energy_j, 1000);
  run.kernel_report.rows.push_back(row({"DtoH"}, 1, 300));
  ASSERT_EQ(run.findings().size(), 1u);
  EXPECT_EQ(run.findings()[0].rule, "synchronization");
  EXPECT_DOUBLE_EQ(run.findings()[0].energy_j, 1500);
}

TEST(Advise, CopiesBetweenHostAndGpuAreAFindingWhateverTheirSource) {
  for (const char* name : {"HtoD", "Memcpy HtoD (Pageable -> Device)"}) {
    AdviceTestReports run;
    run.kernel_report.rows.push_back(row({name}, 1000));
    ASSERT_EQ(run.findings().size(), 1u) << name;
    EXPECT_EQ(run.findings()[0].rule, "host_copies");
  }
}

TEST(Advise, KernelsOfProbingAndOtherProcessesDoNotCount) {
  AdviceTestReports run;
  run.kernel_report.rows = {row({"probe"}, 1000), row({"background"}, 8000)};
  run.kernel_report.rows[0].name = "nchwToNhwc";
  run.kernel_report.rows[1].name = "ampere_sgemm";
  EXPECT_TRUE(run.findings().empty());
}

TEST(Advise, AnOptimizerOfManyKernelsIsAFindingAndAFusedOneIsNot) {
  AdviceTestReports run;
  run.layer_report.rows.push_back(row({"train", "optimizer", "AdamW"}, 900, 100 * 600));
  ASSERT_EQ(run.findings().size(), 1u);
  EXPECT_EQ(run.findings()[0].rule, "unfused_optimizer");
  run.layer_report.rows.back().count = 100 * 6;
  EXPECT_TRUE(run.findings().empty());
}

TEST(Advise, AnOptimizerWithoutAFusedVersionIsNotToBeFused) {
  AdviceTestReports run;
  run.layer_report.rows.push_back(row({"train", "optimizer", "RMSprop"}, 900, 100 * 600));
  ASSERT_EQ(run.findings().size(), 1u);
  EXPECT_EQ(run.findings()[0].change, "foreach=True");
}

TEST(Advise, WithoutEnergyThereAreNoFindings) {
  AdviceTestReports run;
  for (ReportRow& report_row : run.layer_report.rows) report_row.energy_j.reset();
  EXPECT_EQ(advise({run.layer_report, run.kernel_report, run.op_report, kExaminedRunPart}).energy_j, std::nullopt);
  EXPECT_TRUE(run.findings().empty());
}

ReportRow make_cpu_row(std::vector<std::string> path, double energy_j, double time_s = 1, std::uint64_t count = 100) {
  ReportRow cpu_row = row(std::move(path), energy_j, count);
  cpu_row.device = "cpu";
  cpu_row.time_s = time_s;
  return cpu_row;
}

// A training on a CPU, whose products use 800 J.
struct CpuTrainingReports : AdviceTestReports {
  CpuTrainingReports() {
    layer_report.rows = {make_cpu_row({"background"}, 5000), make_cpu_row({"train", "forward", "fc"}, 300),
                         make_cpu_row({"train", "backward", "fc"}, 500)};
    op_report.rows = {make_cpu_row({"background"}, 5000),
                      make_cpu_row({"train", "forward", "fc", "torch.nn.functional.linear"}, 300),
                      make_cpu_row({"train", "backward", "fc", "AddmmBackward0"}, 500)};
    kernel_report.rows = {};
  }
  void add(const ReportRow& operation) {
    op_report.rows.push_back(operation);
    layer_report.rows.push_back(operation);
  }
  Advice advice() const { return advise::advise({layer_report, kernel_report, op_report, kExaminedRunPart}); }
  std::vector<std::string_view> list_finding_rule_names() const {
    std::vector<std::string_view> names;
    for (const Finding& finding : advice().findings) names.push_back(finding.rule);
    return names;
  }
};

using RuleNames = std::vector<std::string_view>;

TEST(AdviseForCpus, AMatrixProductProgramHasNoFindingAndItsEnergyExcludesOtherProcesses) {
  const CpuTrainingReports run;
  EXPECT_EQ(run.list_finding_rule_names(), RuleNames{});
  EXPECT_EQ(run.advice().processor, AdvisedProcessor::cpu);
  EXPECT_EQ(run.advice().energy_j, 800);
}

TEST(AdviseForCpus, AGpuWithEnergyIsJudgedByTheRulesForGpus) {
  CpuTrainingReports run;
  run.add(make_cpu_row({"train", "dataloader", "torch.rand"}, 2000));
  run.layer_report.rows.push_back(row({"train", "forward", "fc"}, 100));
  EXPECT_EQ(run.list_finding_rule_names(), RuleNames{});
  EXPECT_EQ(run.advice().processor, AdvisedProcessor::gpu);
}

TEST(AdviseForCpus, ADataLoaderIsAFindingThatNamesItsCostliestOperations) {
  CpuTrainingReports run;
  run.add(make_cpu_row({"train", "dataloader", "torch.rand"}, 150));
  run.add(make_cpu_row({"worker", "preprocessing", "torch.std"}, 50));
  ASSERT_EQ(run.list_finding_rule_names(), RuleNames{"data_loading"});
  const Finding finding = run.advice().findings[0];
  EXPECT_DOUBLE_EQ(finding.energy_j, 200);
  EXPECT_NE(finding.evidence.at(0).find("20 %"), std::string::npos) << finding.evidence[0];
  EXPECT_NE(finding.evidence.at(0).find("torch.rand (75 %)"), std::string::npos) << finding.evidence[0];
}

TEST(AdviseForCpus, NoChangeSavesMoreThanTheRunUsed) {
  CpuTrainingReports run;
  run.add(make_cpu_row({"train", "dataloader", "torch.rand"}, 9e5));
  const Advice advice = run.advice();
  ASSERT_FALSE(advice.findings.empty());
  for (const Finding& finding : advice.findings) {
    EXPECT_LE(finding.saved_energy_j, *advice.energy_j);
    EXPECT_LE(finding.low_j, *advice.energy_j);
    EXPECT_LE(finding.high_j, *advice.energy_j);
  }
}

TEST(AdviseForCpus, ADataLoaderWithoutRecordedOperationsIsAFindingByItsShare) {
  CpuTrainingReports run;
  run.add(make_cpu_row({"train", "dataloader"}, 200));
  ASSERT_EQ(run.list_finding_rule_names(), RuleNames{"data_loading"});
  EXPECT_EQ(run.advice().findings[0].evidence.at(0), "20 % of the energy of phases and layers");
}

TEST(AdviseForCpus, AnOptimizerOfManyOperationsIsAFindingAndAFusedOneOrPlainSgdIsNot) {
  CpuTrainingReports adam;
  for (const char* name : {"torch.Tensor.lerp_", "torch.Tensor.sqrt", "torch.Tensor.addcdiv_"})
    adam.add(make_cpu_row({"train", "optimizer", "Adam", name}, 100));
  EXPECT_EQ(adam.list_finding_rule_names(), RuleNames{"unfused_optimizer"});
  CpuTrainingReports fused_adam;
  fused_adam.add(make_cpu_row({"train", "optimizer", "Adam", "torch._fused_adam_"}, 300));
  EXPECT_EQ(fused_adam.list_finding_rule_names(), RuleNames{});
  CpuTrainingReports sgd;
  sgd.add(make_cpu_row({"train", "optimizer", "SGD", "torch.Tensor.add_"}, 300));
  EXPECT_EQ(sgd.list_finding_rule_names(), RuleNames{});
}

TEST(AdviseForCpus, AnOptimizerWithoutAFusedVersionIsNoFindingAndNotPartOfAnother) {
  CpuTrainingReports run;
  for (const char* name : {"torch.Tensor.mul_", "torch.Tensor.sqrt", "torch.Tensor.addcdiv_"})
    run.add(make_cpu_row({"train", "optimizer", "RMSprop", name}, 100));
  EXPECT_EQ(run.list_finding_rule_names(), RuleNames{});
  for (const char* name : {"torch.Tensor.lerp_", "torch.Tensor.sqrt", "torch.Tensor.addcdiv_"})
    run.add(make_cpu_row({"train", "optimizer", "Adam", name}, 100));
  run.add(make_cpu_row({"train", "optimizer", "Adam"}, 200));
  ASSERT_EQ(run.list_finding_rule_names(), RuleNames{"unfused_optimizer"});
  const Finding finding = run.advice().findings[0];
  EXPECT_DOUBLE_EQ(finding.energy_j, 500);
  EXPECT_NE(finding.evidence.at(0).find("in 3 operations for each parameter: torch.Tensor.addcdiv_ (20 %), "),
            std::string::npos)
      << finding.evidence[0];
  EXPECT_EQ(finding.evidence[0].find("Adam"), std::string::npos) << finding.evidence[0];
}

TEST(AdviseForCpus, SharesOfOperationsAreThoseOfTheirPhase) {
  CpuTrainingReports run;
  run.add(make_cpu_row({"train", "dataloader"}, 200));
  run.add(make_cpu_row({"train", "dataloader", "torch.Tensor.size"}, 2));
  ASSERT_EQ(run.list_finding_rule_names(), RuleNames{"data_loading"});
  EXPECT_EQ(run.advice().findings[0].evidence.at(0), "20 % of the energy of phases and layers");
  run.add(make_cpu_row({"train", "dataloader", "torch.stack"}, 50));
  EXPECT_EQ(run.advice().findings[0].evidence.at(0),
            "24 % of the energy of phases and layers, partly in torch.stack (20 %)");
}

TEST(AdviseForCpus, ShortOperationsAreAFindingOfTheirOwn) {
  CpuTrainingReports run;
  constexpr double kOperationTime_s = 0.005;  // 50 us each
  run.add(make_cpu_row({"train", "forward", "act", "torch.nn.functional.gelu"}, 500, kOperationTime_s));
  run.add(make_cpu_row({"train", "backward", "act", "GeluBackward0"}, 500, kOperationTime_s));
  EXPECT_EQ(run.list_finding_rule_names(), RuleNames{"small_operations"});
}

TEST(AdviseForCpus, AttentionIsAFindingWithoutItsProjections) {
  CpuTrainingReports run;
  run.add(make_cpu_row({"train", "forward", "attention", "torch.softmax"}, 100));
  run.add(make_cpu_row({"train", "forward", "attention", "torch.Tensor.matmul"}, 200));
  run.add(make_cpu_row({"train", "forward", "attention", "torch.nn.functional.linear"}, 300));
  ASSERT_EQ(run.list_finding_rule_names(), RuleNames{"unfused_attention"});
  EXPECT_DOUBLE_EQ(run.advice().findings[0].energy_j, 300);
}

TEST(AdviseForCpus, InferenceIsEvaluationOnlyBesideTraining) {
  CpuTrainingReports run;
  run.add(make_cpu_row({"inference", "forward", "fc", "torch.nn.functional.linear"}, 400));
  EXPECT_EQ(run.list_finding_rule_names(), RuleNames{"evaluation"});
  std::erase_if(run.op_report.rows, [](const ReportRow& report_row) { return report_row.path.front() == "train"; });
  EXPECT_EQ(run.list_finding_rule_names(), RuleNames{});
}

TEST(AdviseForCpus, ATeacherIsNoEvaluation) {
  CpuTrainingReports run;
  run.add(make_cpu_row({"inference", "forward", "fc", "torch.nn.functional.linear"}, 400));
  run.op_report.steps = 100;
  EXPECT_EQ(run.list_finding_rule_names(), RuleNames{});
  run.op_report.evaluation_steps = 10;
  EXPECT_EQ(run.list_finding_rule_names(), RuleNames{"evaluation"});
}

TEST(AdviseForCpus, CheckpointsAreAFindingAndCompilationDoesNotCount) {
  CpuTrainingReports run;
  run.add(make_cpu_row({"train", "checkpoint_save"}, 200));
  run.add(make_cpu_row({"train", "compile"}, 9000));
  ASSERT_EQ(run.list_finding_rule_names(), RuleNames{"checkpoint"});
  EXPECT_DOUBLE_EQ(run.advice().findings[0].energy_j, 200);
}

}  // namespace
}  // namespace joulemap::advise

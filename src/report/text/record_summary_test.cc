// SPDX-License-Identifier: Apache-2.0
#include "report/text/record_summary.h"

#include <gtest/gtest.h>

namespace joulemap::report {
namespace {

ReportRow make_row(std::vector<std::string> path, double energy_j, std::string device = "cpu") {
  ReportRow row;
  row.path = std::move(path);
  row.device = std::move(device);
  row.energy_j = energy_j;
  row.low_j = 0.9 * energy_j;
  row.high_j = 1.1 * energy_j;
  return row;
}

// 1000 J of a CPU in 10 s, of which the rows of the program use 500 J in 50 steps.
ReportResult make_cpu_training_report() {
  ReportResult result;
  result.elapsed_s = 10;
  result.steps = 50;
  result.totals.measured = MeasuredEnergySum{MeasuredJoules(1000), 5, {}, {"package-0"}};
  result.unattributed_j = 100;
  result.rows = {make_row({"background"}, 400), make_row({"train", "dataloader"}, 350),
                 make_row({"train", "forward", "fc"}, 60), make_row({"train", "backward", "fc"}, 70),
                 make_row({"train", "zero_grad"}, 20)};
  return result;
}

std::string make_summary_text(const ReportResult& result) {
  const Advice advice;
  const std::string file = "run.joule";
  return record_summary_text({result, result, advice, file}, TextStyle{});
}

TEST(RecordSummary, StartsWithTheEnergyOfTheCommandWhereOthersUseTheMachineToo) {
  const std::string text = make_summary_text(make_cpu_training_report());
  EXPECT_TRUE(
      text.starts_with("\n 600 J +- 50.5 J by this command in 10.0 s\n"
                       " 50 steps, 12.0 J each, start-up included\n"))
      << text;
  EXPECT_NE(text.find("The whole machine: 1.00 kJ +- 5.00 J measured (100 W)"), std::string::npos) << text;
}

TEST(RecordSummary, OtherProcessesWhileModulesWereReplayedAreNotSubtractedTwice) {
  ReportResult result = make_cpu_training_report();
  result.rows.push_back(make_row({"probe"}, 300));
  result.totals.measured = MeasuredEnergySum{MeasuredJoules(1300), 5, {}, {"package-0"}};
  result.probe = ProbeCost{5, 500};  // 300 J of the command, 200 J of other processes
  EXPECT_TRUE(make_summary_text(result).starts_with("\n 600 J +- 50.6 J ")) << make_summary_text(result);
}

// 1000 J in 10 s, half of it probing: 100 J of the replayed modules, 400 J of code between them.
TEST(RecordSummary, ProbingIsInNoShareOfTheCommand) {
  ReportResult result;
  result.elapsed_s = 10;
  result.totals.measured = MeasuredEnergySum{MeasuredJoules(1000), 5, {}, {"package-0"}};
  result.rows = {make_row({"train", "forward", "fc"}, 100), make_row({"probe"}, 100)};
  result.idle_j = 0;
  result.unattributed_j = 800;
  result.probe = ProbeCost{5, 500};
  EXPECT_NE(make_summary_text(result).find("It went to: 80.0% start-up and code outside of phases, 20.0% forward\n"),
            std::string::npos)
      << make_summary_text(result);
  result.rows.push_back(make_row({"background"}, 200));
  result.unattributed_j = 600;
  EXPECT_TRUE(make_summary_text(result).starts_with("\n 400 J +- 13.0 J by this command")) << make_summary_text(result);
}

TEST(RecordSummary, StartsWithTheEnergyOfTheMachineWhereTheCommandIsAlone) {
  ReportResult result = make_cpu_training_report();
  result.rows.erase(result.rows.begin());
  const std::string text = make_summary_text(result);
  EXPECT_TRUE(
      text.starts_with("\n 1.00 kJ +- 5.00 J measured in 10.0 s (100 W)\n"
                       " 50 steps, 20.0 J each, start-up included\n"))
      << text;
  EXPECT_EQ(text.find("whole machine"), std::string::npos);
}

// Of a training on a CPU whose layer fc has no waste that a rule finds.
std::string make_summary_without_findings(const ReportResult& result) {
  ReportResult modules = result;
  modules.rows = {make_row({"fc"}, 130)};
  Advice advice;
  advice.processor = AdvisedProcessor::cpu;
  advice.energy_j = 500;
  const std::string file = "run.joule";
  return record_summary_text({result, modules, advice, file}, TextStyle{});
}

// Calls of fc and of another module, in 50 steps.
ReportResult make_report_with_calls(std::uint64_t calls_of_fc, std::uint64_t calls_of_other_module) {
  ReportResult result = make_cpu_training_report();
  result.rows.push_back(make_row({"train", "forward", "embedding"}, 5));
  for (ReportRow& row : result.rows) {
    row.device = "cpu";
    row.count = row.path.back() == "fc" ? calls_of_fc : calls_of_other_module;
  }
  return result;
}

TEST(RecordSummary, SaysThatNoRuleConcernsTheCostliestLayer) {
  const std::string text = make_summary_without_findings(make_cpu_training_report());
  EXPECT_NE(text.find(" layers: no rule found a waste in fc: a smaller layer"), std::string::npos) << text;
  EXPECT_EQ(make_summary_text(make_cpu_training_report()).find(" layers: "), std::string::npos)
      << "nothing was advised";
}

TEST(RecordSummary, NamesLayersThatAForwardPassCallsRepeatedly) {
  const std::string text = make_summary_without_findings(make_report_with_calls(800, 50));
  EXPECT_NE(text.find(" to try: compute once what is the same in each call of fc (16 calls per"), std::string::npos)
      << text;
  EXPECT_NE(text.find("use 21.7% of the energy)\n"), std::string::npos) << text;
}

TEST(RecordSummary, AccumulatedGradientsAreNoRepeatedCalls) {
  const std::string text = make_summary_without_findings(make_report_with_calls(800, 800));
  EXPECT_EQ(text.find("compute once"), std::string::npos) << text;
}

TEST(RecordSummary, NamesNoCodeOfADataLoaderAsALayer) {
  ReportResult result = make_cpu_training_report();
  result.rows.push_back(make_row({"train", "dataloader", "worker.preprocessing"}, 300));
  ReportResult modules = result;
  modules.rows = {make_row({"fc"}, 130), make_row({"worker.preprocessing"}, 300)};  // of an earlier version
  const Advice advice;
  const std::string file = "run.joule";
  const std::string text = record_summary_text({result, modules, advice, file}, TextStyle{});
  EXPECT_NE(text.find("  fc\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("worker.preprocessing"), std::string::npos) << text;
}

TEST(RecordSummary, NamesInferenceEvaluationOnlyInEvaluationSteps) {
  ReportResult result = make_cpu_training_report();
  result.rows.push_back(make_row({"inference", "forward", "fc"}, 100));
  EXPECT_NE(make_summary_text(result).find("% inference"), std::string::npos) << make_summary_text(result);
  result.evaluation_steps = 10;
  EXPECT_NE(make_summary_text(result).find("% evaluation"), std::string::npos) << make_summary_text(result);
}

TEST(RecordSummary, BeginsWithTheFailureOfTheCommand) {
  ReportResult result = make_cpu_training_report();
  result.exit_code = 2;
  EXPECT_TRUE(make_summary_text(result).starts_with("\n The command failed with exit code 2: "))
      << make_summary_text(result);
  result.signal = 9;
  EXPECT_TRUE(make_summary_text(result).starts_with("\n The command was killed by signal 9: "))
      << make_summary_text(result);
}

TEST(RecordSummary, NamesThePhasesOfAProgramOnACpuWithNoticeableEnergy) {
  const std::string text = make_summary_text(make_cpu_training_report());
  EXPECT_NE(text.find("It went to: 58.3% the DataLoader, 16.7% start-up and code outside of phases,"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("11.7% backward, 10.0% forward, 3.3% other\n"), std::string::npos) << text;
}

TEST(RecordSummary, AnAttentionIncludesItsProjectionsAndABlockDoesNotIncludeItsLayers) {
  ReportResult layers;
  layers.elapsed_s = 10;
  layers.totals.measured = MeasuredEnergySum{MeasuredJoules(1000), 5, {}, {"package-0"}};
  ReportResult modules = layers;
  const std::vector<std::pair<std::string, double>> energies_j = {
      {"attn", 60}, {"attn.qkv", 30}, {"attn.proj", 10}, {"ff.0", 40}, {"ff.2", 40}};
  for (const std::string block : {"blocks.0", "blocks.1"}) {
    for (const auto& [name, joules] : energies_j) {
      layers.rows.push_back(make_row({"train", "forward", block + "." + name}, joules));
      modules.rows.push_back(make_row({block + "." + name}, joules));
    }
    layers.rows.push_back(make_row({"train", "forward", block}, 5));
    modules.rows.push_back(make_row({block}, 5));
  }
  const Advice advice;
  const std::string text = record_summary_text({layers, modules, advice, "run.joule"}, TextStyle{});
  EXPECT_NE(text.find("20.0%     200 J  +- 10 %  blocks.*.attn incl. proj, qkv (2 of them)\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("16.0%     160 J  +- 10 %  blocks.*.ff (2 of them)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("1.0%    10.0 J  +- 10 %  blocks.* itself\n"), std::string::npos) << text;
}

TEST(RecordSummary, OfARunWithAGpuNamesWhatTheGpuWaitedForInstead) {
  ReportResult result = make_cpu_training_report();
  result.rows.push_back(make_row({"train", "forward", "fc"}, 100, "gpu0"));
  EXPECT_EQ(make_summary_text(result).find("It went to"), std::string::npos);
}

}  // namespace
}  // namespace joulemap::report

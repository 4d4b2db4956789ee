// SPDX-License-Identifier: Apache-2.0
#include "report/text/run_summary_sentences.h"

#include <gtest/gtest.h>

#include <sstream>

#include "report/text/command_energy.h"
#include "report/text/idle_gpu_text.h"

namespace joulemap::report {
namespace {

ReportRow make_row(std::vector<std::string> path, double energy_j) {
  ReportRow row;
  row.path = std::move(path);
  row.device = "gpu0";
  row.energy_j = energy_j;
  return row;
}

// A run of 10 s in which a GPU used 1000 J, of which 300 J while it was idle.
RunView training() {
  RunView view;
  view.run.elapsed_s = 10;
  view.run.totals.measured = MeasuredEnergySum{MeasuredJoules(1000), 5, {}, {"gpu0"}};
  DomainEnergy gpu;
  gpu.name = "gpu0";
  gpu.joules = 1000;
  view.run.domains = {gpu};
  view.rates.energy_j = 1000;
  view.rates.steps = 50;
  LevelView phases{.by = "phase", .rows = {}, .attributed_j = 700, .idle_j = 300, .unattributed_j = 0};
  phases.rows = {make_row({"train", "forward"}, 200), make_row({"train", "optimizer"}, 350), make_row({"probe"}, 150)};
  phases.idle = {{.cause = IdleCause::data, .path = {}, .device = "gpu0", .energy_j = 250},
                 {.cause = IdleCause::startup, .path = {}, .device = "gpu0", .energy_j = 50}};
  LevelView layers = phases;
  layers.by = "layer";
  layers.rows = {make_row({"train", "optimizer"}, 350), make_row({"train", "forward", "conv"}, 120),
                 make_row({"train", "forward", "fc"}, 80)};
  LevelView modules = layers;
  modules.by = "module";
  modules.rows = {make_row({"conv"}, 120), make_row({"fc"}, 80)};
  view.levels = {phases, layers, modules};
  return view;
}

TEST(AnswerText, StatesEnergyActiveAndWaitingSharesAndWhatCostMost) {
  const std::vector<std::string> expected = {
      "This run used 1.00 kJ ± 5.00 J (90 % interval), measured, in 10.0 s: 50 steps of 20.0 J each.",
      "Work on gpu0 used 70 % of its energy.",
      "30 % of the energy of gpu0 was used while it was idle: 25 % waiting for the DataLoader, 5 % before its first "
      "work.",
      "The costliest phase is train optimizer on gpu0 with 350 J (35.0 %) of the command's energy.",
      "Costliest layers, all passes together: conv with 120 J (12.0 %), fc with 80.0 J (8.0 %)."};
  EXPECT_EQ(run_summary_sentences(training()), expected);
}

TEST(AnswerText, SharesAreThoseOfTheCommandWhereOtherProcessesUseTheMachineToo) {
  RunView view = training();
  for (LevelView& level : view.levels) {
    level.rows.push_back(make_row({"background"}, 200));
    level.idle_j = 100;
  }
  const std::vector<std::string> sentences = run_summary_sentences(view);
  EXPECT_EQ(sentences[1],
            "The command itself used 800 J of it: 50 steps of 16.0 J each; the rest went to other processes and idle "
            "parts.");
  EXPECT_EQ(sentences.back(),
            "Costliest layers, all passes together: conv with 120 J (20.0 %), fc with 80.0 J (13.3 %).");
}

TEST(CommandRates, OfAViewExcludeOtherProcesses) {
  RunView view = training();
  view.levels.insert(view.levels.begin(), LevelView{.by = "kernel", .rows = {make_row({"gemm"}, 550)}});
  EXPECT_EQ(command_rates(view).energy_j, 1000);
  for (LevelView& level : view.levels) {
    if (level.by != "kernel") level.rows.push_back(make_row({"background"}, 200));
  }
  const RunRates rates = command_rates(view);
  EXPECT_EQ(rates.energy_j, 800);
  EXPECT_EQ(rates.energy_per_unit(rates.steps), 16);
}

TEST(CommandRates, ContainOtherProcessesWhereNoRowSeparatesThemFromAnEstimate) {
  RunView view = training();
  view.rates.provenance = Provenance::estimated;
  EXPECT_FALSE(are_other_processes_included(view));
  view.levels.clear();
  EXPECT_TRUE(are_other_processes_included(view));
  view.rates.provenance = Provenance::measured;
  EXPECT_FALSE(are_other_processes_included(view));
}

TEST(AnswerText, UsesTheSentenceOfTheTextReport) {
  const RunView view = training();
  ReportResult result = view.run;
  result.idle = view.levels[0].idle;
  // Removes the line breaks of the text report.
  std::istringstream words(idle_gpu_headline(result));
  std::string headline;
  for (std::string word; words >> word;) headline += (headline.empty() ? "" : " ") + word;
  EXPECT_EQ(headline, run_summary_sentences(view)[2]);
}

TEST(AnswerText, OfManyGpusItNamesThoseThatWaitedMost) {
  RunView view = training();
  for (int gpu = 1; gpu < 8; ++gpu) {
    DomainEnergy domain = view.run.domains[0];
    domain.name = "gpu" + std::to_string(gpu);
    view.run.domains.push_back(domain);
    view.levels[0].idle.push_back(
        {.cause = IdleCause::data, .path = {}, .device = domain.name, .energy_j = gpu == 5 ? 900.0 : 100.0});
  }
  const std::vector<std::string> sentences = run_summary_sentences(view);
  EXPECT_EQ(sentences[1], "Work on gpu5 used 10 % of its energy.");
  EXPECT_EQ(sentences[3], "Work on gpu0 used 70 % of its energy.");
  EXPECT_EQ(sentences[5], "6 other GPUs waited less.");
}

TEST(AnswerText, StatesThatTheEnergyIsUnknown) {
  RunView view;
  view.run.elapsed_s = 2;
  EXPECT_EQ(run_summary_sentences(view), std::vector<std::string>{"This run took 2.00 s; its energy is unknown."});
}

TEST(AnswerText, StatesTheEnergyOfProbing) {
  RunView view = training();
  view.run.probe = ProbeCost{3, 400};
  EXPECT_TRUE(run_summary_sentences(view)[1].starts_with("Probing used 400 J of it (40 %)"))
      << run_summary_sentences(view)[1];
}

}  // namespace
}  // namespace joulemap::report

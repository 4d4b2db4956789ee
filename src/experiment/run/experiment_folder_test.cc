// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/experiment_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/small_file.h"
#include "base/text.h"
#include "support/temporary_directory.h"

namespace joulemap::experiment {
namespace {

constexpr std::string_view kExperimentToml =
    "name = 'two'\ncommand = ['x', '{v}']\nrepetitions = 3\n[factors]\nv = ['a, b', 'c']\n[metrics.acc]\n"
    "more_is_better = true\n";

ExperimentRow sample_row(std::size_t number) {
  ExperimentRow row;
  row.number = number;
  row.levels = {0};
  row.node = "here";
  row.state = ExperimentRowState::done;
  row.exit_code = 0;
  row.start_unix_ns = 1'700'000'000'123'456'789;
  row.elapsed_s = 1.5;
  row.baseline.measured = MeasuredWatts(10);
  row.first.estimated = EstimatedWatts(4);
  DomainEnergy domain;
  domain.name = "package-0";
  domain.joules = 30.25;
  domain.provenance = Provenance::measured;
  domain.is_counted = true;
  row.domains = {domain};
  row.metrics = {0.75};
  row.epochs = {{0.25, 0.5, 10.0, {0.5}}, {0.75, 0.5, std::nullopt, {std::nullopt}}};
  row.diagnostics.add({"counter_reset", 2, "it was reset", "do not"});
  return row;
}

std::optional<double> energy_j(const ExperimentRow& row) { return joules_of(total_energy(row.domains).measured); }

ExperimentRow parse_row(std::string_view json) {
  const Result<ExperimentRow> row = parse_row_json(json, "row.json", {});
  EXPECT_TRUE(row);
  return row ? *row : ExperimentRow();
}

TEST(LegacyRows, ReadsAMixedSumByDomain) {
  const ExperimentRow row = parse_row(R"({"schema": "joulemap.row/1", "energy_j": 1100, "baseline_w": 90, "first_w": 99,
      "domains": [{"name": "gpu0", "joules": 100, "provenance": "measured", "counted": true},
                  {"name": "package-0", "joules": 1000, "provenance": "estimated", "counted": true}]})");
  EXPECT_EQ(energy_j(row), 100);
  EXPECT_EQ(joules_of(total_energy(row.domains).estimated), 1000);
  EXPECT_FALSE(preferred_power(row.baseline)) << "nobody knows which part of it was measured";
  EXPECT_TRUE(row.diagnostics.contains("mixed_idle_power"));
}

TEST(LegacyRows, PowerOfASingleProvenanceIsRead) {
  const ExperimentRow row = parse_row(R"({"schema": "joulemap.row/1", "energy_j": 100, "baseline_w": 90, "first_w": 99,
      "domains": [{"name": "gpu0", "joules": 100, "provenance": "measured", "counted": true}]})");
  EXPECT_EQ(row.baseline.measured, MeasuredWatts(90));
  EXPECT_EQ(row.first.measured, MeasuredWatts(99));
  EXPECT_TRUE(row.diagnostics.empty());
}

TEST(LegacyRows, EnergyWithoutDomainsBelongsToTheMachine) {
  const ExperimentRow row = parse_row(R"({"schema": "joulemap.row/1", "energy_j": 100})");
  EXPECT_EQ(energy_j(row), 100);
  EXPECT_EQ(row.domains.at(0).name, "machine");
}

TEST(RowJson, EnergyIsMeasuredAndTheEstimateIsASeparateMember) {
  ExperimentRow row = sample_row(0);
  DomainEnergy estimate = row.domains[0];
  estimate.name = "dram-0";
  estimate.joules = 1000;
  estimate.provenance = Provenance::estimated;
  row.domains.push_back(estimate);
  const std::string json = row_json(row, {}, {});
  EXPECT_NE(json.find(R"("energy_j":30.25,"energy_provenance":"measured","measured_j":30.25)"), std::string::npos);
  EXPECT_NE(json.find(R"("estimated_j":1000)"), std::string::npos) << json;
}

class ExperimentFolderTest : public testing::Test {
 protected:
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/exp";
};

TEST_F(ExperimentFolderTest, RoundTripsARow) {
  Result<ExperimentFolder> folder = ExperimentFolder::create(path, kExperimentToml, "/somewhere");
  ASSERT_TRUE(folder) << folder.error().message;
  ASSERT_EQ(folder->run_table().size(), 6u);
  const Result<Attempt> attempt = folder->begin_attempt("rows", 2);
  ASSERT_TRUE(attempt);
  ASSERT_TRUE(folder->set_row_state(2, ExperimentRowState::running, attempt->attempt_number));
  ASSERT_TRUE(folder->finish_attempt(*attempt, sample_row(2), {}));
  ASSERT_TRUE(folder->set_row_state(2, ExperimentRowState::done, attempt->attempt_number));
  const Result<ExperimentData> data = read_experiment(path);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_TRUE(data->is_blocked);
  ASSERT_EQ(data->rows.size(), 6u);
  const ExperimentRow& row = data->rows[2];
  EXPECT_EQ(row.state, ExperimentRowState::done);
  EXPECT_EQ(row.start_unix_ns, 1'700'000'000'123'456'789);
  EXPECT_EQ(energy_j(row), 30.25);
  EXPECT_EQ(row.baseline.measured, MeasuredWatts(10));
  EXPECT_EQ(row.first.estimated, EstimatedWatts(4));
  EXPECT_EQ(row.domains.at(0).provenance, Provenance::measured);
  EXPECT_EQ(row.metrics, std::vector<std::optional<double>>{0.75});
  ASSERT_EQ(row.epochs.size(), 2u);
  EXPECT_EQ(row.epochs[0].energy_j, 10.0);
  EXPECT_EQ(row.epochs[1].energy_j, std::nullopt);
  EXPECT_EQ(row.diagnostics.list().at(0).count, 2u);
  EXPECT_EQ(data->rows[0].state, ExperimentRowState::todo);
  EXPECT_EQ(data->rows[0].metrics.size(), 1u);
}

TEST_F(ExperimentFolderTest, NeverCreatesAFolderTwice) {
  ASSERT_TRUE(ExperimentFolder::create(path, kExperimentToml, "."));
  EXPECT_FALSE(ExperimentFolder::create(path, kExperimentToml, "."));
}

TEST_F(ExperimentFolderTest, AnAttemptNeverReusesTheFolderOfAnother) {
  const Result<ExperimentFolder> folder = ExperimentFolder::create(path, kExperimentToml, ".");
  const Result<Attempt> first_attempt = folder->begin_attempt("rows", 0);
  const Result<Attempt> second_attempt = folder->begin_attempt("rows", 0);
  ASSERT_TRUE(first_attempt && second_attempt);
  EXPECT_NE(first_attempt->path, second_attempt->path);
}

TEST_F(ExperimentFolderTest, RowsOverrideAnOutdatedTable) {
  Result<ExperimentFolder> folder = ExperimentFolder::create(path, kExperimentToml, ".");
  const Result<Attempt> attempt = folder->begin_attempt("rows", 1);
  ASSERT_TRUE(folder->finish_attempt(*attempt, sample_row(1), {}));
  Result<ExperimentFolder> reopened_folder = ExperimentFolder::open(path);
  ASSERT_TRUE(reopened_folder) << reopened_folder.error().message;
  EXPECT_EQ(reopened_folder->run_table()[1].state, ExperimentRowState::done);
  EXPECT_EQ(reopened_folder->run_table()[1].attempt_count, 1u);
  ASSERT_TRUE(folder->set_row_state(0, ExperimentRowState::done, 1));
  ASSERT_TRUE(folder->reload_run_table());
  EXPECT_EQ(folder->run_table()[0].state, ExperimentRowState::todo);
}

TEST_F(ExperimentFolderTest, AnAttemptOfAKilledRunnerFailedAndThatOfALiveOneRuns) {
  Result<ExperimentFolder> folder = ExperimentFolder::create(path, kExperimentToml, ".");
  const Result<Attempt> attempt = folder->begin_attempt("rows", 1);
  ASSERT_TRUE(folder->set_row_state(1, ExperimentRowState::running, 1));
  ASSERT_TRUE(folder->reload_run_table());
  EXPECT_EQ(folder->run_table()[1].state, ExperimentRowState::running);  // this process is the owner
  const std::string owner = *read_small_file(attempt->path + "/owner");
  const std::vector<std::string_view> words = split_whitespace(owner);  // boot, PID, start, namespace, node
  ASSERT_EQ(words.size(), 5u);
  std::ofstream(attempt->path + "/owner") << words[0] << " 4194999 1 pid:[1] here\n";
  ASSERT_TRUE(folder->reload_run_table());
  EXPECT_EQ(folder->run_table()[1].state, ExperimentRowState::running);  // PIDs of another container say nothing
  std::ofstream(attempt->path + "/owner") << words[0] << " 4194999 1 " << words[3] << " here\n";
  ASSERT_TRUE(folder->reload_run_table());
  EXPECT_EQ(folder->run_table()[1].state, ExperimentRowState::failed);
}

TEST_F(ExperimentFolderTest, ReportsADamagedRowAndUsesThePreviousAttempt) {
  Result<ExperimentFolder> folder = ExperimentFolder::create(path, kExperimentToml, ".");
  ASSERT_TRUE(folder->finish_attempt(*folder->begin_attempt("rows", 0), sample_row(0), {}));
  const Result<Attempt> second_attempt = folder->begin_attempt("rows", 0);
  std::ofstream(second_attempt->path + "/row.json") << "{\"schema\": \"joulemap.row/1\", \"ener";
  const Result<ExperimentData> data = read_experiment(path);
  ASSERT_TRUE(data);
  EXPECT_EQ(energy_j(data->rows[0]), 30.25);
  EXPECT_TRUE(data->diagnostics.contains("row_damaged"));
}

TEST_F(ExperimentFolderTest, RefusesATableThatDoesNotMatchThePlan) {
  ASSERT_TRUE(ExperimentFolder::create(path, kExperimentToml, "."));
  std::ofstream(path + "/experiment.toml") << "command = ['x']\n[factors]\nw = ['a']\n";
  const Result<ExperimentFolder> folder = ExperimentFolder::open(path);
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message.find("does not match"), std::string::npos);
}

TEST_F(ExperimentFolderTest, RoundTripsImportedRows) {
  ExperimentData data;
  data.name = "study";
  data.factors = {{"v", {"a", "b"}}};
  data.metrics = {{"acc", "%", true}};
  for (std::size_t number = 0; number < 4; ++number) {
    data.rows.push_back(sample_row(number));
    data.rows.back().levels = {number % 2};
    data.rows.back().block = number / 2;
  }
  ASSERT_TRUE(write_experiment(path, data));
  const Result<ExperimentData> stored_data = read_experiment(path);
  ASSERT_TRUE(stored_data) << stored_data.error().message;
  ASSERT_EQ(stored_data->rows.size(), 4u);
  EXPECT_FALSE(stored_data->is_blocked);
  EXPECT_EQ(stored_data->rows[3].levels, std::vector<std::size_t>{1});
  EXPECT_EQ(stored_data->rows[3].block, 1u);
  EXPECT_EQ(energy_j(stored_data->rows[3]), 30.25);
  EXPECT_TRUE(stored_data->diagnostics.empty());
  EXPECT_FALSE(write_experiment(path, data));
}

TEST(ReplaceOwnFile, ReplacingAFileDoesNotFollowALinkAtItsTemporaryPath) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/row.json";
  const std::string foreign_path = directory.path() + "/stranger";
  ASSERT_TRUE(replace_file_nofollow(foreign_path, "precious"));
  std::filesystem::create_symlink(foreign_path, path);
  std::filesystem::create_symlink(foreign_path, path + ".new-" + std::to_string(::getpid()));
  ASSERT_TRUE(replace_file_nofollow(path, "ours"));
  EXPECT_EQ(*read_small_file(foreign_path), "precious");
  EXPECT_EQ(*read_small_file(path), "ours");
  EXPECT_FALSE(std::filesystem::is_symlink(path));
}

}  // namespace
}  // namespace joulemap::experiment

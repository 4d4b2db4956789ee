// SPDX-License-Identifier: Apache-2.0
#include "report/export/exports.h"

#include <gtest/gtest.h>

#include "formats/sqlite.h"
#include "report/export/energy_stacks.h"
#include "scopes/cause_names.h"

namespace joulemap::report {
namespace {

ReportRow make_row(std::vector<std::string> path, std::optional<double> energy_j) {
  ReportRow row;
  row.path = std::move(path);
  row.display_name = row.path.back();
  row.device = "gpu0";
  row.time_s = 2;
  row.count = 7;
  row.energy_j = energy_j;
  return row;
}

RunView make_three_layer_view() {
  RunView view;
  view.run.command = {"train", "\xff"};
  view.levels = {{"layer",
                  {make_row({"train", "forward", "a.b"}, 1.5), make_row({"train", "forward", "say \"x\", y;z"}, 0.25),
                   make_row({"train", "backward", "a.b"}, std::nullopt)},
                  {},
                  1.75,
                  0.5,
                  0,
                  {}}};
  view.steps = {{.number = 3, .begin_s = 0, .end_s = 1, .time_s = 0.5, .energy_j = 4, .loss = {}}};
  return view;
}

TEST(Exports, FoldedStacksAreInMicrojoulesWithFullModuleNames) {
  const Result<std::string> text = folded_stacks_text(make_three_layer_view(), {});
  ASSERT_TRUE(text);
  EXPECT_EQ(*text,
            "gpu0;train;forward;a;a.b 1500000\n"
            "gpu0;train;forward;say \"x\", y,z 250000\n"
            "idle 500000\n");
}

TEST(Exports, TheCallGraphHasEnergiesOfFunctionsAndCalls) {
  RunView view = make_three_layer_view();
  view.levels[0].rows.push_back(make_row({"train", "forward", "aten::copy_"}, 2.25));
  const Result<std::string> dot_text = graphviz_dot_text(view, {});
  ASSERT_TRUE(dot_text);
  EXPECT_NE(dot_text->find("\"forward\" -> \"aten::copy_\" [label=\"2.25 J\""), std::string::npos) << *dot_text;
  EXPECT_NE(dot_text->find("\"say \\\"x\\\""), std::string::npos) << "quotes in names are escaped";
}

TEST(Exports, TheCallGraphHasCausesFromTheLedgerAndMarksThoseFromNames) {
  RunView view = make_three_layer_view();
  EnergyCause ledger_cause{EnergyCauseClass::launch, CauseBasis::ledger};
  ledger_cause.times_s[EnergyCauseClass::launch] = 3;
  ledger_cause.times_s[EnergyCauseClass::synchronization] = 1;
  view.levels[0].rows[0].cause = ledger_cause;
  view.levels[0].rows[1].cause = scopes::make_cause_from_name("copy_", 1);
  const Result<std::string> dot_text = graphviz_dot_text(view, {});
  ASSERT_TRUE(dot_text);
  EXPECT_NE(dot_text->find("\\nlaunch\""), std::string::npos) << *dot_text;
  EXPECT_NE(dot_text->find("\\nmemory (by name)\""), std::string::npos);
  // The total is 2.25 J. Of the first row's 1.5 J, a quarter (0.375 J, 16.7 %) is synchronization.
  EXPECT_NE(dot_text->find("memory 11.1 %; launch 50.0 %; synchronisation 16.7 %"), std::string::npos);
}

TEST(Exports, StacksWithoutEnergyAreCounted) {
  const Result<EnergyStacks> stacks = energy_stacks(make_three_layer_view(), "");
  ASSERT_TRUE(stacks);
  EXPECT_EQ(stacks->missing_energy_count, 1u);
  EXPECT_EQ(stacks->stacks.size(), 5u);
}

TEST(Exports, ALevelThatTheRunLacksIsAnError) {
  EXPECT_FALSE(folded_stacks_text(make_three_layer_view(), {"kernel"}));
  EXPECT_FALSE(pprof_bytes(RunView(), {}));
  RunView unknown = make_three_layer_view();
  for (ReportRow& row : unknown.levels[0].rows) row.energy_j.reset();
  unknown.levels[0].idle_j.reset();
  EXPECT_FALSE(folded_stacks_text(unknown, {}));
  EXPECT_FALSE(speedscope_json(unknown, {}));
}

TEST(Exports, CsvIsTheRequestedTableOrAnError) {
  for (const std::string level : {"kernel", "request", "token"}) {
    const Result<std::string> text = csv_text(make_three_layer_view(), {level});
    ASSERT_FALSE(text) << level;
    EXPECT_EQ(text.error().message, "the recording contains no rows by " + level);
  }
  const Result<std::string> default_table = csv_text(RunView(), {});
  ASSERT_TRUE(default_table);
  EXPECT_TRUE(default_table->starts_with("domain,energy_j,"));
}

TEST(Exports, CsvQuotesWhereNeededAndLeavesUnknownValuesEmpty) {
  const Result<std::string> text = csv_text(make_three_layer_view(), {});
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("gpu0,train forward a.b,a.b,7,2,1.5,,,,,,,,,,,,,,,,\r\n"), std::string::npos);
  EXPECT_NE(text->find("\"train forward say \"\"x\"\", y;z\""), std::string::npos);
  EXPECT_NE(text->find("gpu0,train backward a.b,a.b,7,2,,,,,,,,,,,,,,,,,\r\n"), std::string::npos);
  EXPECT_NE(text->find(",idle,idle,,,0.5,,,,,,,,,,,,,,,,\r\n"), std::string::npos);
}

TEST(Exports, CsvOfStepsHasTheirPower) {
  const Result<std::string> text = csv_text(make_three_layer_view(), {"step"});
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "number,begin_s,end_s,time_s,energy_j,power_w,loss,joules_per_loss\r\n3,0,1,0.5,4,8,,\r\n");
}

TEST(Exports, TheDatabaseHasNullForUnknownValues) {
  const Result<std::string> bytes = sqlite_bytes(make_three_layer_view(), {});
  ASSERT_TRUE(bytes);
  const Result<formats::SqliteDatabase> database = formats::SqliteDatabase::from_bytes(*bytes);
  ASSERT_TRUE(database);
  formats::SqliteRows rows = database->rows("rows", {"path", "energy_j", "count"});
  int known_energy_count = 0;
  int unknown = 0;
  while (rows.next()) ++(rows.is_null(1) ? unknown : known_energy_count);
  EXPECT_EQ(known_energy_count, 2);
  EXPECT_EQ(unknown, 1);
  formats::SqliteRows steps = database->rows("steps", {"number", "loss"});
  ASSERT_TRUE(steps.next());
  EXPECT_EQ(steps.integer(0), 3);
  EXPECT_TRUE(steps.is_null(1));
}

}  // namespace
}  // namespace joulemap::report

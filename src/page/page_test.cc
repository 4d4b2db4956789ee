// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "page/page_data.h"
#include "page/page_html.h"

namespace joulemap::page {
namespace {

constexpr std::string_view kHostileText = "</script><b onload=x>&\"'<!--";

RunView make_run_view(const std::string& name, std::size_t rows = 1) {
  RunView view;
  view.run.command = {"python", name};
  view.run.elapsed_s = 2;
  view.run.slice_s = 1;
  view.run.totals.measured = MeasuredEnergySum{MeasuredJoules(100), 1, {}, {"gpu0"}};
  view.run.power = {{name, {50.0, std::nullopt}}};
  view.run.diagnostics.add({"odd", 1, name, name});
  LevelView level{.by = "layer", .rows = {}, .attributed_j = 90, .idle_j = 6, .unattributed_j = 4, .diagnostics = {}};
  for (std::size_t i = 0; i < rows; ++i) {
    ReportRow row;
    row.path = {"train", "forward", name};
    row.name = row.display_name = name;
    row.device = "gpu0";
    row.energy_j = 90.0 / static_cast<double>(rows);
    level.rows.push_back(row);
  }
  view.levels.push_back(level);
  return view;
}

std::size_t count_occurrences(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t position = text.find(part); position != text.npos; position = text.find(part, position + 1)) ++count;
  return count;
}

TEST(Page, EscapesNamesOfARecording) {
  for (const PageBundle& bundle : {PageBundle{}, PageBundle{"run()", "p{}"}}) {
    const std::string page = page_html(make_run_view(std::string(kHostileText)), bundle);
    EXPECT_EQ(count_occurrences(page, "<b onload"), 0u);
    EXPECT_EQ(count_occurrences(page, "<!--"), 0u);
    EXPECT_EQ(count_occurrences(page, "</script>"), bundle.script.empty() ? 0u : 2u);
    EXPECT_NE(page.find("&lt;/script&gt;&lt;b onload=x&gt;"), page.npos);
  }
}

TEST(Page, LoadsNoExternalResource) {
  const std::string page = page_html(make_run_view("conv1"));
  for (const char* resource_reference : {"src=\"", "href=\"http", "<link", "@import", "url("}) {
    EXPECT_EQ(count_occurrences(page, resource_reference), 0u) << resource_reference;
  }
  EXPECT_NE(page.find("default-src 'none'"), page.npos);
}

TEST(Page, WithoutScriptsItShowsTheSameContent) {
  const std::string page = page_html(make_run_view("conv1"), {});
  EXPECT_EQ(page.find("<script"), page.npos);
  EXPECT_NE(page.find("<svg"), page.npos);
  EXPECT_NE(page.find("train forward conv1"), page.npos);
  for (const char* expected_text :
       {"idle</th><td></td><td>6.000 J", "not attributed</th><td></td><td>4.000 J", "odd"}) {
    EXPECT_NE(page.find(expected_text), page.npos) << expected_text;
  }
}

TEST(Page, EscapesNamesOfADifference) {
  RunDifference difference;
  difference.a.inputs = {std::string(kHostileText)};
  difference.entries.push_back({.path = {std::string(kHostileText)}, .display_name = std::string(kHostileText)});
  for (const PageBundle& bundle : {PageBundle{}, PageBundle{"run()", "p{}"}}) {
    const std::string page = diff_html(difference, bundle);
    EXPECT_EQ(count_occurrences(page, "<b onload"), 0u);
    EXPECT_EQ(count_occurrences(page, "</script>"), bundle.script.empty() ? 0u : 2u);
    EXPECT_NE(page.find("&lt;/script&gt;"), page.npos);
  }
}

TEST(Page, SumsTheRestOfManyRows) {
  const std::string data = page_data(make_run_view("conv1", 30), {.rows = 20});
  EXPECT_EQ(count_occurrences(data, "[[0,1,2],2,3,"), 20u);
  EXPECT_NE(data.find("\"rest\":{\"rows\":10,\"energy_j\":30.0"), data.npos) << data;
}

TEST(Page, ContainsTheAnswerInWordsWithAndWithoutScripts) {
  const RunView view = make_run_view("conv1");
  EXPECT_NE(page_data(view).find("\"answer\":[\"This run used 100 J"), std::string::npos);
  EXPECT_NE(page_html(view, {}).find("<p>This run used 100 J"), std::string::npos);
}

TEST(Page, ContainsFindingsWithAndWithoutScripts) {
  RunView view = make_run_view("conv1");
  view.advice.emplace();
  view.advice->energy_j = 100;
  Finding& finding = view.advice->findings.emplace_back();
  finding.title = "gpu0 waits for the <DataLoader>";
  finding.change = "raise num_workers";
  finding.saved_energy_j = 12;
  EXPECT_NE(page_data(view).find("\"change\":\"raise num_workers\",\"saving\":\"saves about 12 %, 12.0 J\""),
            std::string::npos)
      << page_data(view);
  EXPECT_NE(page_html(view, {}).find("<li>gpu0 waits for the &lt;DataLoader&gt;: saves about 12 %"), std::string::npos);
}

TEST(Page, ContainsLayersAndWaitsOfSteps) {
  RunView view = make_run_view("conv1");
  StepDetail step{.number = 7, .begin_s = 1, .gpu_begin_s = 1.25, .gpu_end_s = 1.5, .kernels = 3};
  step.layers = {{{"train", "forward", "conv1"}, "gpu0", 0.125, 60}};
  step.waits = {{IdleCause::data, "gpu0", 0.125, std::nullopt}};
  view.step_details = {step};
  view.detailed_steps = 9;
  const std::string data = page_data(view);
  EXPECT_NE(data.find("\"detailed_steps\":9"), data.npos);
  EXPECT_NE(data.find("\"layers\":[[[0,1,2],3,0.125,60.0]]"), data.npos) << data;
  EXPECT_NE(data.find("\"waits\":[[\"data\",3,0.125,null]]"), data.npos) << data;
}

TEST(Page, UnknownValuesAreNull) {
  const std::string data = page_data(make_run_view("conv1"));
  EXPECT_NE(data.find("\"values\":[50.0,null]"), data.npos);
  EXPECT_NE(data.find("\"joules_per_sample\":null"), data.npos);
}

}  // namespace
}  // namespace joulemap::page

// SPDX-License-Identifier: Apache-2.0
//
// Compares tables, the citation sentence and the model card with the texts in tests/golden.
#include <gtest/gtest.h>

#include "report/export/citation.h"
#include "report/export/tables.h"

#include "report/export/table_escapes.h"
#include "support/golden.h"
#include "support/ledger_example.h"

namespace joulemap::report {
namespace {

ReportResult training() {
  ReportResult result = make_training_report();
  result.rows[1].path.back() = "a_b|c & 100%";
  result.domains[0].device_model = "NVIDIA H200";
  return result;
}

TEST(Tables, AreMarkdown) {
  expect_golden("table.md", format_report_table(training(), TableFormat::markdown, {{}, 4}));
}

TEST(Tables, AreLatex) { expect_golden("table.tex", format_report_table(training(), TableFormat::latex, {})); }

TEST(Tables, AreCsvWithAllDigits) {
  ReportResult result = training();
  result.rows[0].path.back() = "with \"quotes\", and a comma";
  expect_golden("table.csv", format_report_table(result, TableFormat::csv, {}));
}

TEST(Tables, DomainTablesDistinguishPartsAndEstimates) {
  ReportResult result = training();
  result.by = "domain";
  expect_golden("table_domains.md", format_report_table(result, TableFormat::markdown, {}));
}

TEST(Citation, StatesEnergyUncertaintyAndMethod) {
  expect_golden("citation.txt", citation_text(training(), "", "0.1.0"));
  EXPECT_NE(citation_text({}, "", "0.1.0").find("is unknown"), std::string::npos);
}

TEST(ModelCard, HasEmissionsOnlyWithAKnownGridIntensity) {
  ModelCardOptions options{"Berlin, \"DE\"", "fine-tuning", "", CarbonAccount{}};
  options.account->assumptions.carbon_intensity = CarbonIntensity{400, {}, "Germany", "test", 2023};
  options.account->assumptions.pue = 1.2;
  options.account->entries = {{.energy_j = 1000, .gco2_per_kwh = 400, .gco2 = 0.1333}};
  const Result<std::string> model_card = model_card_markdown(training(), options, "0.1.0");
  ASSERT_TRUE(model_card);
  expect_golden("model_card.yaml", *model_card);
  options.compute_location = "";
  EXPECT_NE(model_card_markdown(training(), options, "0.1.0")->find("geographical_location: \"Germany\""),
            std::string::npos);
  const Result<std::string> unknown = model_card_markdown(training(), {}, "0.1.0");
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->find("\n  emissions:"), std::string::npos);
  EXPECT_FALSE(model_card_markdown({}, {}, "0.1.0")) << "no energy, no card";
}

TEST(TableEscapes, PrefixAFormulaWithAnApostrophe) {
  EXPECT_EQ(escape_csv_field("=1+2"), "'=1+2");
  EXPECT_EQ(escape_csv_field("@SUM(a,\"b\")"), "\"'@SUM(a,\"\"b\"\")\"");
  EXPECT_EQ(escape_csv_field("-m"), "'-m");
  EXPECT_EQ(escape_csv_field("-1.5e3"), "-1.5e3");
  EXPECT_EQ(escape_csv_field("\t=1"), "?=1");
  EXPECT_EQ(escape_csv_field("plain"), "plain");
}

}  // namespace
}  // namespace joulemap::report

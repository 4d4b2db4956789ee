// SPDX-License-Identifier: Apache-2.0
#include "report/disclosure/disclosure.h"

#include <gtest/gtest.h>

#include "formats/document.h"
#include "report/disclosure/disclosed_energy.h"
#include "report/export/citation.h"
#include "support/ledger_example.h"

namespace joulemap::report {
namespace {

constexpr std::int64_t kStart_ns = 1'794'759'899LL * 1'000'000'000;

DisclosureOptions make_all_options() {
  DisclosureOptions options;
  options.model_name = "m";
  options.lifecycle_stage = "training";
  options.account = CarbonAccount{};
  options.account->assumptions.carbon_intensity = CarbonIntensity{400, {}, "Germany", "test", 2023};
  options.account->embodied_gco2 = 1;
  options.account->entries = {{.energy_j = 4500, .facility_j = 4500, .gco2_per_kwh = 400, .gco2 = 0.5}};
  return options;
}

std::string write_disclosure_text(std::string_view format, const ReportResult& result,
                                  const DisclosureOptions& options = make_all_options()) {
  const Result<Disclosure> disclosure = find_disclosure_format(format)->write_disclosure(result, options, "0.1.0");
  return disclosure ? disclosure->text : disclosure.error().message;
}

formats::DocumentValue write_disclosure_json(std::string_view format, const ReportResult& result,
                                             const DisclosureOptions& options = make_all_options()) {
  return *formats::read_json(write_disclosure_text(format, result, options), format);
}

TEST(Disclosure, APartOfARunIsNamedAsOneInEveryFormat) {
  ReportResult result = make_training_report();
  result.is_clipped = true;
  result.elapsed_s = 5;
  for (const DisclosureFormat& format : disclosure_formats()) {
    const std::string text = write_disclosure_text(format.name, result);
    if (format.name == "sci") {
      EXPECT_NE(text.find("needs the whole run"), std::string::npos) << text;
    } else {
      EXPECT_NE(text.find("only 5.00 s of the run"), std::string::npos) << text;
    }
    EXPECT_EQ(write_disclosure_text(format.name, make_training_report()).find("of the run"), std::string::npos);
  }
  EXPECT_NE(citation_text(result, "", "0.1.0").find("only 5.00 s of the run"), std::string::npos);
}

TEST(Disclosure, ExcludedDomainsAreNotIncluded) {
  ReportResult result = make_training_report();
  result.domains[1].is_counted = false;
  result.domains.push_back(result.domains[0]);
  result.domains.back().name = "gpu0-memory";
  result.domains.back().part_of = "gpu0";
  result.domains.back().is_counted = false;
  result.totals = total_energy(result.domains);
  for (const DisclosureFormat& format : disclosure_formats()) {
    const std::string text = write_disclosure_text(format.name, result);
    EXPECT_NE(text.find("not included: package-0"), std::string::npos) << text;
    EXPECT_EQ(text.find("gpu0-memory"), std::string::npos) << "a part of a counted domain is included";
  }
  const formats::DocumentValue eu_ai_act_document = write_disclosure_json("eu-ai-act", result);
  ASSERT_EQ(eu_ai_act_document.find("not_included")->array()->size(), 1U);
  EXPECT_EQ(eu_ai_act_document.find("not_included")->array()->front().text(), "package-0");
}

TEST(Disclosure, WithoutAnyDomainTheExclusionIsTheReason) {
  ReportResult result = make_training_report();
  for (DomainEnergy& domain : result.domains) domain.is_counted = false;
  result.totals = total_energy(result.domains);
  const Result<Disclosure> disclosure = boamps_disclosure(result, make_all_options(), "0.1.0");
  ASSERT_FALSE(disclosure);
  EXPECT_EQ(disclosure.error().code, ErrorCode::usage);
  EXPECT_NE(disclosure.error().message.find("gpu0, package-0"), std::string::npos) << disclosure.error().message;
  EXPECT_EQ(huggingface_disclosure(result, make_all_options(), "0.1.0").error().code, ErrorCode::usage);
  EXPECT_EQ(boamps_disclosure({}, make_all_options(), "0.1.0").error().code, ErrorCode::unsupported);
}

TEST(Disclosure, TimeAndEnergyAreWithoutProbing) {
  ReportResult result = make_training_report();
  result.probe = ProbeCost{4, 500};
  const formats::DocumentValue eu_ai_act_document = write_disclosure_json("eu-ai-act", result);
  EXPECT_EQ(eu_ai_act_document.number("elapsed_s"), 6);
  EXPECT_DOUBLE_EQ(*eu_ai_act_document.find("energy")->array()->front().number("energy_mwh"), 4000 / 3.6e9);
  const formats::DocumentValue boamps = write_disclosure_json("boamps", result);
  for (const formats::DocumentValue& measure : *boamps.find("measures")->array())
    EXPECT_EQ(measure.number("measurementDuration"), 6);
}

TEST(Disclosure, CpusOfAllHostsAreCounted) {
  ReportResult result = make_training_report();
  result.environment = {{"cpu", "Example CPU"}};
  const auto count = [&] { return collect_disclosed_hardware(result).back().count; };
  EXPECT_EQ(count(), 1);
  result.domains[1].name = "node1/package-0";
  for (const char* name : {"node1/package-1-die-0", "node1/package-1-die-1", "node2/package-0", "node2/dram-0"}) {
    result.domains.push_back(result.domains[1]);
    result.domains.back().name = name;
  }
  EXPECT_EQ(count(), 3);
  result.environment.push_back({"cpu", "Other CPU"});
  EXPECT_EQ(count(), std::nullopt) << "which host has which CPU is unknown";
  result.domains.resize(1);
  result.environment.resize(1);
  EXPECT_EQ(count(), std::nullopt);
  const Result<Disclosure> disclosure = boamps_disclosure(result, make_all_options(), "0.1.0");
  ASSERT_TRUE(disclosure);
  EXPECT_EQ(disclosure->missing_members.back(), "infrastructure.components.nbComponent");
}

TEST(Boamps, MeasuresOfTheRunAreAddedToThoseOfTheCaller) {
  ReportResult result = make_training_report();
  result.start_unix_ns = kStart_ns;
  DisclosureOptions options = make_all_options();
  for (const char* json_without_measures :
       {R"({})", R"({"measures": []})", R"({"measures": null})", R"({"measures": [{}]})"}) {
    options.base_json = json_without_measures;
    EXPECT_EQ(write_disclosure_json("boamps", result, options).find("measures")->array()->size(), 2U)
        << json_without_measures;
  }
  options.base_json = R"({"measures": [{"measurementMethod": "codecarbon", "powerConsumption": 1}]})";
  const formats::DocumentValue merged_report = write_disclosure_json("boamps", result, options);
  const formats::DocumentValue::Array& measures = *merged_report.find("measures")->array();
  ASSERT_EQ(measures.size(), 3U);
  EXPECT_EQ(measures[0].text_or_empty("measurementMethod"), "codecarbon");
  EXPECT_EQ(measures[1].text_or_empty("measurementMethod"), "joulemap (measured)");
  options.base_json = write_disclosure_text("boamps", result, options);
  EXPECT_EQ(write_disclosure_json("boamps", result, options).find("measures")->array()->size(), 3U)
      << "of the same run";
  result.start_unix_ns = kStart_ns + 5'000'000'000;
  EXPECT_EQ(write_disclosure_json("boamps", result, options).find("measures")->array()->size(), 5U) << "of another run";
  options.base_json = R"({"measures": 5})";
  EXPECT_EQ(boamps_disclosure(result, options, "0.1.0").error().code, ErrorCode::usage);
}

TEST(Boamps, BlankMembersAreMissing) {
  DisclosureOptions options = make_all_options();
  options.base_json = R"({"task": {"taskStage": "", "taskFamily": " ", "dataset": {}, "algorithms": null},
                          "infrastructure": {"infraType": "publicCloud", "components": [{"nbComponent": null}]}})";
  const Result<Disclosure> disclosure = boamps_disclosure(make_training_report(), options, "0.1.0");
  ASSERT_TRUE(disclosure);
  EXPECT_EQ(disclosure->missing_members, (std::vector<std::string>{"task.taskFamily", "task.dataset"}));
  const formats::DocumentValue report = *formats::read_json(disclosure->text, "made");
  EXPECT_EQ(report.find_path("task.taskStage")->text(), "training");
  EXPECT_EQ(report.find_path("infrastructure.infraType")->text(), "publicCloud");
}

}  // namespace
}  // namespace joulemap::report

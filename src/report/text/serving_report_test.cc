// SPDX-License-Identifier: Apache-2.0
//
// Text and JSON of the energy of a serving engine.
#include <gtest/gtest.h>

#include "report/export/exports.h"
#include "report/json/report_json.h"
#include "report/text/serving_text.h"

namespace joulemap::report {
namespace {

ReportResult make_two_request_report() {
  ReportResult result;
  result.by = "request";
  ServingResult& serving = result.serving.emplace();
  serving.steps = 12;
  serving.requests = serving.finished = 2;
  serving.prompt_tokens = 100;
  serving.output_tokens = 20;
  serving.decoded_tokens = 18;
  serving.has_energy = true;
  serving.requests_j = 30;
  serving.wasted_rejected_j = 2;
  serving.rejected_tokens = 4;
  serving.idle_j = 5;
  serving.outside_steps_j = 3;
  serving.prefill = {10, 9, 11};
  serving.decode = {18, 17, 19};
  serving.distribution = {0, 0, 2, 15, 15, 16, 17};
  serving.by_batch_size = {{1, 1, 12, 1.5, 32, 18, 18, 1.0}};
  ServedRequest request;
  request.id = "a, \"quoted\" id";
  request.tenant = "acme";
  request.status = RequestStatus::finished;
  request.shares = {15, 14, 13, 12};
  serving.listed_requests = {request, request};
  serving.labels = {{"tenant", "acme", 2, 100, 0, 20, 30, 29, 31, 12, 11, 13}};
  serving.steady_phase = {1.5, 32, 100, 20, 1.6, 13.3};
  return result;
}

TEST(ServingReport, TextShowsJoulesPerTokenAndWhereTheEnergyWent) {
  const std::string text = serving_text(make_two_request_report(), TextStyle{});
  for (const std::string_view words :
       {"2 requests (2 finished) in 12 steps", "0.1000 J per input token", "1.000 J per output token",
        "rejected speculative", "idle while loaded", "P99", "tenant acme", "steady state"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << " is not in\n" << text;
  }
}

TEST(ServingReport, UnknownEnergyIsNotShownAsZero) {
  ReportResult result = make_two_request_report();
  result.serving->has_energy = false;
  EXPECT_EQ(serving_text(result, TextStyle{}).find(" J"), std::string::npos);
  const std::string json = report_json(result);
  EXPECT_NE(json.find("\"requests_j\":null"), std::string::npos);
  EXPECT_NE(json.find("\"output_tokens\":20"), std::string::npos);
}

TEST(ServingReport, JsonHasEveryShareOfARequest) {
  const std::string json = report_json(make_two_request_report());
  for (const std::string_view part :
       {"\"energy_j\":15.0", "\"token_j\":14.0", "\"time_j\":13.0", "\"marginal_j\":12.0", "\"avoidable_j\":12.0"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part;
  }
}

TEST(ServingReport, OtherReportsHaveNoServing) {
  EXPECT_EQ(serving_text(ReportResult{}, TextStyle{}), "");
  EXPECT_NE(report_json(ReportResult{}).find("\"serving\":null"), std::string::npos);
}

TEST(ServingReport, CsvHasALineForEachRequest) {
  RunView view;
  view.run = make_two_request_report();
  const Result<std::string> csv = csv_text(view, {"request"});
  ASSERT_TRUE(csv);
  EXPECT_NE(csv->find("\"a, \"\"quoted\"\" id\",acme,,finished,"), std::string::npos) << *csv;
  EXPECT_EQ(std::count(csv->begin(), csv->end(), '\n'), 3);
}

}  // namespace
}  // namespace joulemap::report

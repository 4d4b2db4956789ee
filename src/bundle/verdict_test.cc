// SPDX-License-Identifier: Apache-2.0
#include "bundle/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace joulemap::bundle {
namespace {

ReportResult good_report() {
  ReportResult report;
  report.complete = true;
  report.elapsed_s = 60;
  report.totals.measured = MeasuredSum{MeasuredJoules(6000), 10, {}, {"gpu0"}};
  report.counter_updates = {{"gpu0-energy", 0.1, 0, 0, 0}};
  return report;
}

std::vector<std::string> codes_of(const ReportResult& report, std::optional<double> clock_jump_s = {}) {
  std::vector<std::string> codes;
  for (const VerdictReason& reason : judge(report, clock_jump_s).reasons) {
    EXPECT_FALSE(reason.sentence.empty()) << reason.code;
    codes.push_back(reason.code);
  }
  return codes;
}

std::vector<std::string> codes_with(std::string code) {
  ReportResult report = good_report();
  report.diagnostics.add(Diagnostic{std::move(code), 1, "a message", ""});
  return codes_of(report);
}

using Codes = std::vector<std::string>;

TEST(Verdict, ACompleteMeasuredRunIsValid) { EXPECT_EQ(codes_of(good_report()), Codes()); }

TEST(Verdict, NotesOfTheMethodDoNotMatter) { EXPECT_EQ(codes_with("kernels_by_time"), Codes()); }

TEST(Verdict, DiagnosticsGiveReasons) {
  EXPECT_EQ(codes_with("power_limited"), Codes{"throttled"});
  EXPECT_EQ(codes_with("clocks_slowed"), Codes{"throttled"});
  EXPECT_EQ(codes_with("gpu_shared"), Codes{"co_tenant"});
  EXPECT_EQ(codes_with("recording_damaged"), Codes{"gaps"});
  EXPECT_EQ(codes_with("window_too_short"), Codes{"too_short"});
}

TEST(Verdict, EnergyOfOtherProcessesIsCoTenancy) {
  ReportResult report = good_report();
  ReportRow row;
  row.path = {"background"};
  row.energy_j = 12;
  report.rows.push_back(row);
  EXPECT_EQ(codes_of(report), Codes{"co_tenant"});
  EXPECT_NE(judge(report, {}).reasons[0].sentence.find("12 J"), std::string::npos);
}

TEST(Verdict, AnIncompleteRecordingHasGaps) {
  ReportResult report = good_report();
  report.complete = false;
  EXPECT_EQ(codes_of(report), Codes{"gaps"});
}

TEST(Verdict, EstimatesAndUnknownEnergiesAreDistinguished) {
  ReportResult report = good_report();
  report.totals.measured.reset();
  EXPECT_EQ(codes_of(report), Codes{"no_energy"});
  report.totals.estimated = EstimatedSum{EstimatedJoules(10), {}, {}, {"package-0"}};
  EXPECT_EQ(codes_of(report), Codes{"estimates_only"});
}

TEST(Verdict, ClocksThatJump) { EXPECT_EQ(codes_of(good_report(), -3600.0), Codes{"clock_jump"}); }

TEST(Verdict, ARunOfFewUpdatesIsTooShort) {
  ReportResult report = good_report();
  report.elapsed_s = 0.9;
  EXPECT_EQ(codes_of(report), Codes{"too_short"});
  report.counter_updates[0].period_s = 0.001;
  EXPECT_EQ(codes_of(report), Codes());
  report.counter_updates.clear();
  EXPECT_EQ(codes_of(report), Codes{"too_short"}) << "without a known period, that of NVML is assumed";
}

}  // namespace
}  // namespace joulemap::bundle

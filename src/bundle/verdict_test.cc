// SPDX-License-Identifier: Apache-2.0
#include "bundle/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace joulemap::bundle {
namespace {

ReportResult make_good_report() {
  ReportResult report;
  report.complete = true;
  report.elapsed_s = 60;
  report.totals.measured = MeasuredEnergySum{MeasuredJoules(6000), 10, {}, {"gpu0"}};
  report.counter_updates = {{"gpu0-energy", 0.1, 0, 0, 0}};
  return report;
}

std::vector<std::string> verdict_codes_of(const ReportResult& report, std::optional<double> clock_jump_s = {}) {
  std::vector<std::string> codes;
  for (const VerdictReason& reason : judge_measurement(report, clock_jump_s).reasons) {
    EXPECT_FALSE(reason.sentence.empty()) << reason.code;
    codes.push_back(reason.code);
  }
  return codes;
}

std::vector<std::string> verdict_codes_with_diagnostic(std::string code) {
  ReportResult report = make_good_report();
  report.diagnostics.add(Diagnostic{std::move(code), 1, "a message", ""});
  return verdict_codes_of(report);
}

using DiagnosticCodes = std::vector<std::string>;

TEST(JudgeMeasurement, ACompleteMeasuredRunIsValid) {
  EXPECT_EQ(verdict_codes_of(make_good_report()), DiagnosticCodes());
}

TEST(JudgeMeasurement, MethodDiagnosticsDoNotAffectTheVerdict) {
  EXPECT_EQ(verdict_codes_with_diagnostic("kernels_by_time"), DiagnosticCodes());
}

TEST(JudgeMeasurement, DiagnosticsGiveReasons) {
  EXPECT_EQ(verdict_codes_with_diagnostic("power_limited"), DiagnosticCodes{"throttled"});
  EXPECT_EQ(verdict_codes_with_diagnostic("clocks_slowed"), DiagnosticCodes{"throttled"});
  EXPECT_EQ(verdict_codes_with_diagnostic("gpu_shared"), DiagnosticCodes{"co_tenant"});
  EXPECT_EQ(verdict_codes_with_diagnostic("recording_damaged"), DiagnosticCodes{"gaps"});
  EXPECT_EQ(verdict_codes_with_diagnostic("window_too_short"), DiagnosticCodes{"too_short"});
}

ReportResult report_with_background(double energy_j, std::string device) {
  ReportResult report = make_good_report();
  ReportRow row;
  row.path = {"background"};
  row.device = std::move(device);
  row.energy_j = energy_j;
  report.rows.push_back(row);
  return report;
}

TEST(JudgeMeasurement, OtherProcessesOnAGpuAreCoTenants) {
  const ReportResult report = report_with_background(12, "gpu0");
  EXPECT_EQ(verdict_codes_of(report), DiagnosticCodes{"co_tenant"});
  EXPECT_NE(judge_measurement(report, {}).reasons[0].sentence.find("12 J"), std::string::npos);
}

TEST(JudgeMeasurement, OtherProcessesOnACpuAreCoTenantsFromFivePercentOn) {
  EXPECT_EQ(verdict_codes_of(report_with_background(290, "cpu")), DiagnosticCodes());
  const ReportResult report = report_with_background(600, "cpu");
  EXPECT_EQ(verdict_codes_of(report), DiagnosticCodes{"co_tenant"});
  EXPECT_NE(judge_measurement(report, {}).reasons[0].sentence.find("600 J, 10 % of the energy"), std::string::npos);
}

TEST(JudgeMeasurement, TheCpusOfSeveralMachinesAreCpus) {
  EXPECT_EQ(verdict_codes_of(report_with_background(290, "vm/cpu")), DiagnosticCodes());
  EXPECT_EQ(verdict_codes_of(report_with_background(600, "vm/cpu")), DiagnosticCodes{"co_tenant"});
  EXPECT_EQ(verdict_codes_of(report_with_background(12, "vm/gpu0")), DiagnosticCodes{"co_tenant"});
}

TEST(JudgeMeasurement, AnIncompleteRecordingHasGaps) {
  ReportResult report = make_good_report();
  report.complete = false;
  EXPECT_EQ(verdict_codes_of(report), DiagnosticCodes{"gaps"});
}

TEST(JudgeMeasurement, EstimatesAndUnknownEnergiesAreDistinguished) {
  ReportResult report = make_good_report();
  report.totals.measured.reset();
  EXPECT_EQ(verdict_codes_of(report), DiagnosticCodes{"no_energy"});
  report.totals.estimated = EstimatedEnergySum{EstimatedJoules(10), {}, {}, {"package-0"}};
  EXPECT_EQ(verdict_codes_of(report), DiagnosticCodes{"estimates_only"});
}

TEST(JudgeMeasurement, ReportsClocksThatJump) {
  EXPECT_EQ(verdict_codes_of(make_good_report(), -3600.0), DiagnosticCodes{"clock_jump"});
}

TEST(JudgeMeasurement, ARunOfFewUpdatesIsTooShort) {
  ReportResult report = make_good_report();
  report.elapsed_s = 0.9;
  EXPECT_EQ(verdict_codes_of(report), DiagnosticCodes{"too_short"});
  report.counter_updates[0].period_s = 0.001;
  EXPECT_EQ(verdict_codes_of(report), DiagnosticCodes());
  report.counter_updates.clear();
  EXPECT_EQ(verdict_codes_of(report), DiagnosticCodes{"too_short"})
      << "without a known period, that of NVML is assumed";
}

}  // namespace
}  // namespace joulemap::bundle

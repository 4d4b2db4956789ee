// SPDX-License-Identifier: Apache-2.0
//
// Compares the output of record, report and calibrate with the texts in tests/golden.
#include <gtest/gtest.h>

#include "report/json/calibrate_json.h"
#include "report/json/record_json.h"
#include "report/json/report_json.h"
#include "report/text/calibrate_text.h"
#include "report/text/energy_rows.h"
#include "report/text/record_text.h"
#include "report/text/report_text.h"
#include "report/text/sparkline.h"
#include "support/golden.h"

namespace joulemap::report {
namespace {

DomainEnergy domain(std::string name, double joules, double half_width_j, std::string sensor) {
  DomainEnergy row;
  row.name = std::move(name);
  row.joules = joules;
  row.uncertainty_j = half_width_j;
  row.mean_w = joules / 10;
  row.provenance = Provenance::measured;
  row.is_counted = true;
  row.sensor = std::move(sensor);
  return row;
}

ReportResult training() {
  ReportResult result;
  result.inputs = {"run.joule"};
  result.command = {"python", "train.py", "--epochs", "2"};
  result.hosts = {"node1"};
  result.start_unix_ns = 1'790'000'000'000'000'000;
  result.start_monotonic_ns = 5'000'000'000;
  result.exit_code = 0;
  result.complete = true;
  result.elapsed_s = 10;
  result.domains = {domain("package-0", 500, 1.5, "powercap"), domain("gpu0", 4200, 12, "nvml"),
                    domain("gpu0-memory", 900, 30, "nvml")};
  result.domains[2].is_counted = false;
  result.domains[2].part_of = "gpu0";
  result.totals = total_energy(result.domains);
  result.attributed_j = joules_of(result.totals.measured);
  result.idle_j = result.unattributed_j = 0;
  ReportRow row;
  row.path = {"gpu0"};
  row.name = row.display_name = "gpu0";
  row.count = 1;
  row.time_s = 10;
  row.energy_j = 4200;
  row.low_j = 4188;
  row.high_j = 4212;
  row.power_w = 420;
  row.share = 4200.0 / 4700;
  row.basis = "measured";
  result.rows = {row};
  result.slice_s = 2;
  result.power = {{"package-0", {40, 50, 60, 50, 50}}, {"gpu0", {120, 700, std::nullopt, 690, 130}}};
  result.tracks = {{"gpu0-temperature", Quantity::temperature, {40, 55, 60, std::nullopt, 50}}};
  result.counter_updates = {{"gpu0-energy", 0.0999997, 0.0013, 14'900'000'000, 0}};
  result.steps = 100;
  result.epochs = 2;
  result.metrics = {{"loss", 100, 2.3, 0.41, 60}};
  result.environment = {{"kernel", "6.8.0"}, {"governor", "performance"}};
  result.probe = ProbeCost{1.5, 210};
  result.overhead_cpu_s = 0.07;
  result.samples = 12'345;
  result.file_bytes = 30'000;
  return result;
}

CalibrateResult calibration() {
  CalibrateResult result;
  result.observation_time_s = 5;
  ChannelCalibration counter;
  counter.channel = "gpu0-energy";
  counter.device = "GPU-1";
  counter.driver = "580.159";
  counter.refresh_s = 0.0999997;
  counter.refresh_spread_s = 2e-6;
  counter.read_wall_s = 0.0032;
  counter.read_cpu_s = 0.0031;
  counter.idle_w = 76.2;
  counter.created_unix_ns = 1'790'000'000'000'000'000;
  ChannelCalibration power = counter;
  power.channel = "gpu0-power-average";
  power.read_wall_s = power.read_cpu_s = 2.5e-6;
  power.phase_s = 0.0203;
  power.phase_reference_channel = "gpu0-energy";
  ChannelCalibration power_limit_calibration = counter;
  power_limit_calibration.channel = "gpu0-power-limit";
  power_limit_calibration.refresh_s = power_limit_calibration.refresh_spread_s = power_limit_calibration.idle_w =
      std::nullopt;
  result.findings = {counter, power, power_limit_calibration};
  result.calibration_file = "/home/me/.local/share/joulemap/calibration.joule";
  result.diagnostics.add({"not_idle", 1, "gpu0 was 40 % busy: its idle power is too high", "calibrate while idle"});
  return result;
}

CalibrateResult loaded_calibration() {
  CalibrateResult result = calibration();
  result.loaded_domains = {"gpu0"};
  ChannelCalibration& counter = result.findings[0];
  counter.lag_s = 0.0102;
  counter.lag_low_s = 0.0094;
  counter.lag_high_s = 0.0111;
  counter.active_idle_w = 131.5;
  counter.loaded_w = 486;
  counter.gain_spread = 0.005;
  ChannelCalibration& power = result.findings[1];
  power.lag_s = -0.001;
  power.lag_low_s = -0.004;
  power.lag_high_s = 0.002;
  power.window_s = 1.002;
  power.active_idle_w = 131.7;
  power.loaded_w = 487.1;
  power.gain = 1.0032;
  power.gain_spread = 0.0004;
  power.gain_reference_channel = "gpu0-energy";
  ChannelCalibration history = counter;
  history.channel = "gpu0-power-history";
  history.refresh_s = 0.02;
  history.lag_s = history.lag_low_s = history.lag_high_s = 0.0005;
  history.time_constant_s = 0.0121;
  history.settle_s = 0;
  history.sleep_s = 0.78;
  history.sleep_w = 99.8;
  history.gain_spread = std::nullopt;
  result.findings.push_back(history);
  result.diagnostics.add(
      {"gpu_not_loaded",
       1,
       "gpu1 was not loaded, its sensor latency is unknown: cuCtxCreate: out of memory (CUDA error 2)",
       {}});
  return result;
}

RecordResult make_record_result() {
  RecordResult result;
  result.command = {"python", "train.py"};
  result.file = "run.joule";
  result.file_bytes = 123'456;
  result.samples = 45'678;
  result.elapsed_s = 12.5;
  result.exit_code = 0;
  result.energy.rows = {domain("package-0", 500, 1.5, "powercap")};
  result.energy.totals = total_energy(result.energy.rows);
  result.overhead_cpu_s = 0.05;
  SamplerCost cost;
  cost.sensor = "powercap";
  cost.cpu_ns = 50'000'000;
  cost.reads = 250;
  cost.lateness.add(60'000);
  result.samplers = {cost};
  return result;
}

TEST(EnergyRows, AnIntervalThatReachesBelowZeroIsARangeFromZero) {
  EXPECT_NE(energy_row_text(make_energy_row(domain("gpu0", 12, 3, "nvml"))).find("+- 3.0 "), std::string::npos);
  const std::string row = energy_row_text(make_energy_row(domain("gpu0", 12, 30, "nvml")));
  EXPECT_NE(row.find("12.00 J 0 .. 42 "), std::string::npos) << row;
}

TEST(EnergyRows, DigitsAreThoseOfTheRoundedNumber) {
  EXPECT_EQ(format_number(9.99999, 4), "10.00");
  EXPECT_EQ(format_number(9.99999, 3), "10.0");
  EXPECT_EQ(format_number(99.996, 3), "100");
  EXPECT_EQ(format_number(0.99999, 3), "1.00");
  EXPECT_EQ(format_number(9.99, 3), "9.99");
  EXPECT_EQ(format_number(0.0012345, 3), "0.00123");
  EXPECT_EQ(format_number(-123456.7, 3), "-123457");
}

TEST(RecordingReport, PrintsARecordingAsText) {
  expect_golden("report.txt", report_text(training(), {}, {CharacterSet::unicode}));
}

TEST(RecordingReport, NeedsNoUnicode) { expect_golden("report_ascii.txt", report_text(training(), {}, {})); }

TEST(RecordingReport, PrintsARecordingAsJson) { expect_golden("report.json", report_json(training()) + "\n"); }

TEST(RecordingReport, ReportsATruncatedRecordingAndUnknownValues) {
  ReportResult result;
  result.diagnostics.add(
      {"no_samples", 1, "no sensor was recorded: energies are unknown", "run joulemap doctor to see why"});
  expect_golden("report_nothing.txt", report_text(result, {}, {}));
  expect_golden("report_nothing.json", report_json(result) + "\n");
}

TEST(RecordingReport, PrintsTheContentOfARecording) {
  expect_golden("record.txt", record_text(make_record_result()));
  expect_golden("record.json", record_json(make_record_result()) + "\n");
}

TEST(RecordingReport, PrintsACalibration) {
  expect_golden("calibrate.txt", calibrate_text(calibration()));
  expect_golden("calibrate.json", calibrate_json(calibration()) + "\n");
  expect_golden("calibrate_loaded.txt", calibrate_text(loaded_calibration()));
  expect_golden("calibrate_loaded.json", calibrate_json(loaded_calibration()) + "\n");
}

TEST(Sparkline, LeavesABlankForUnknownValues) {
  const std::vector<std::optional<double>> values = {0, 100, std::nullopt, 50};
  EXPECT_EQ(sparkline(values, 4, 100, false), "_# =");
  EXPECT_EQ(sparkline(values, 2, 100, false), "==");
  EXPECT_EQ(sparkline({}, 10, 100, false), "");
}

}  // namespace
}  // namespace joulemap::report

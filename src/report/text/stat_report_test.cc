// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "report/json/stat_json.h"
#include "report/text/stat_summary.h"
#include "report/text/stat_text.h"
#include "support/golden.h"

namespace joulemap::report {
namespace {

DomainEnergy measured(std::string name, double joules, double uncertainty_j, std::string parent_domain = "") {
  DomainEnergy domain;
  domain.name = std::move(name);
  domain.joules = joules;
  domain.uncertainty_j = uncertainty_j;
  domain.mean_w = joules / 6;
  domain.provenance = Provenance::measured;
  domain.is_counted = parent_domain.empty();
  domain.part_of = std::move(parent_domain);
  domain.sensor = "powercap";
  return domain;
}

StatRun make_run(double joules) {
  StatRun run;
  run.start_unix_ns = 1'700'000'000'000'000'000;
  run.start_monotonic_ns = 123'456'789;
  run.elapsed_s = 6;
  run.exit_code = 0;
  run.domains = {measured("package-0", joules, 0.03), measured("core-0", 0.8 * joules, 0.03, "package-0"),
                 measured("dram-0", 12.25, 0.004)};
  run.totals = total_energy(run.domains);
  run.user_s = 5.75;
  run.system_s = 0.125;
  run.process_cpu_s = 5.875;
  run.machine_cpu_s = 6.25;
  run.process_share = 0.94;
  run.overhead_cpu_s = 0.0123;
  return run;
}

StatResult make_result(std::vector<StatRun> runs) {
  StatResult result;
  result.command = {"python3", "train.py", "--epochs", "3"};
  result.runs = std::move(runs);
  result.summary = summarize_runs(result.runs, result.interval);
  return result;
}

StatResult make_result_with_all_faults() {
  StatRun run = make_run(310);
  DomainEnergy frozen_domain;
  frozen_domain.name = "psys";
  frozen_domain.reason = "frozen";
  frozen_domain.is_counted = true;
  frozen_domain.sensor = "powercap";
  DomainEnergy estimate = measured("dram-0", 28, 19);
  estimate.provenance = Provenance::estimated;
  estimate.sensor = "estimate";
  estimate.model = "4.725 W = (0.2 W/GiB up to 16 GiB, 0.1 W/GiB beyond) x 31.2 GiB, +-67 %";
  run.domains[2] = estimate;
  run.domains.push_back(frozen_domain);
  run.domains[0].checks = {{"hwmon", "package-0-energy", 309.5, 0.2}};
  run.totals = total_energy(run.domains);
  run.exit_code = 139;
  run.signal = 11;
  run.process_share = std::nullopt;
  run.intervals = {{0, 3, {run.domains[0], frozen_domain}}, {3, 6, {run.domains[0], frozen_domain}}};
  run.diagnostics.add(
      {"counter_frozen", 1,
       "psys (/sys/class/powercap/intel-rapl:1/energy_uj) stood still all the time: no energy can be told",
       "a virtual machine or the firmware may hold it; see joulemap doctor"});
  run.diagnostics.add({"counter_reset", 3, "package-0 fell", ""});
  StatResult result = make_result({run});
  result.command = {"sh", "-c", "printf '\x1b[31m\xff'"};
  return result;
}

TEST(StatTextReport, ATotalIsTheMeanOfRunsWithAllDomains) {
  StatRun faulty_run = make_run(310);
  faulty_run.domains[0].joules = faulty_run.domains[0].mean_w = std::nullopt;
  faulty_run.domains[0].reason = "denied";
  faulty_run.totals = total_energy(faulty_run.domains);
  const std::string text = stat_text(make_result({make_run(300), faulty_run}));
  EXPECT_NE(text.find("312."), std::string::npos) << text;
  EXPECT_EQ(text.find("162."), std::string::npos) << "the mean of sums over different domains: " << text;
  EXPECT_NE(text.find("1 of 2 runs"), std::string::npos) << text;
}

TEST(StatTextReport, ShowsOneRun) { expect_golden("stat_one_run.txt", stat_text(make_result({make_run(310.4)}))); }

TEST(StatTextReport, ShowsTheMeanOfSeveralRuns) {
  expect_golden(
      "stat_five_runs.txt",
      stat_text(make_result({make_run(310.4), make_run(312), make_run(308.8), make_run(311), make_run(309.9)})));
}

TEST(StatTextReport, MarksEstimatedMissingAndSuspiciousValues) {
  expect_golden("stat_odd.txt", stat_text(make_result_with_all_faults()));
}

TEST(StatTextReport, PrintsIntervalsLive) {
  const StatRun run = make_result_with_all_faults().runs[0];
  expect_golden("stat_intervals.txt",
                stat_interval_text(run.intervals[0], true) + stat_interval_text(run.intervals[1], false));
}

TEST(StatTextReport, FitsEightyColumnsWithoutControlCharacters) {
  for (const StatResult& result : {make_result({make_run(310.4)}), make_result({make_run(3.1e6), make_run(2.9e6)})}) {
    const std::string text = stat_text(result);
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t end = text.find('\n', start);
      EXPECT_LE(end - start, 80u) << text.substr(start, end - start);
      start = end + 1;
    }
  }
  EXPECT_EQ(stat_text(make_result_with_all_faults()).find('\x1b'), std::string::npos);
}

TEST(StatJsonReport, KeepsItsContract) {
  expect_golden("stat_two_runs.json", stat_json(make_result({make_run(310.4), make_run(312)})) + "\n");
}

TEST(StatJsonReport, PrintsNullWithAReasonForUnknownValues) {
  expect_golden("stat_odd.json", stat_json(make_result_with_all_faults()) + "\n");
}

}  // namespace
}  // namespace joulemap::report

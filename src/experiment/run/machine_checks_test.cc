// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/machine_checks.h"

#include <gtest/gtest.h>

#include "experiment/run/row_metrics.h"
#include "support/temporary_directory.h"

namespace joulemap::experiment {
namespace {

class MachineChecks : public ::testing::Test {
 protected:
  CheckOutcome run_check(std::string_view name) const {
    for (const CheckOutcome& outcome : check_machine({directory_.path()}, spec_, idle_, sensors_)) {
      if (outcome.check_name == name) return outcome;
    }
    ADD_FAILURE() << "no check called " << name;
    return {};
  }
  void write(std::string_view path, std::string_view content) const { directory_.write(path, content); }

  TemporaryDirectory directory_;
  ChecksSpec spec_;
  std::optional<IdleState> idle_ = IdleState{};
  std::vector<SensorStatus> sensors_;
};

TEST_F(MachineChecks, UnreadableChecksAreUnknownAndNotPassed) {
  for (const std::string_view name : {"governor", "turbo", "load", "swap", "temperature"}) {
    EXPECT_EQ(run_check(name).state, CheckState::unknown) << name;
    EXPECT_NE(run_check(name).message, "") << name;
  }
  idle_.reset();
  EXPECT_EQ(run_check("gpu_processes").state, CheckState::unknown) << "not checked";
  EXPECT_EQ(run_check("throttling").state, CheckState::unknown) << "not checked";
}

TEST_F(MachineChecks, ALoadAverageIsNoShareOfCpuTime) {
  write("proc/loadavg", "4.46 2.00 1.00 2/300 1234\n");
  write("sys/devices/system/cpu/online", "0-1\n");
  idle_.reset();
  const CheckOutcome average = run_check("load");
  EXPECT_EQ(average.state, CheckState::warned);
  EXPECT_EQ(average.message, "the machine has a load average of 2.23 per CPU");
  idle_.emplace().busy_share = 0.5;
  EXPECT_EQ(run_check("load").message, "other processes use 50.0 % of all CPUs");
}

TEST_F(MachineChecks, ListsAllGovernorsThatDifferBetweenCpus) {
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n");
  EXPECT_EQ(run_check("governor").state, CheckState::passed);
  write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
  EXPECT_EQ(run_check("governor").state, CheckState::warned);
  EXPECT_EQ(run_check("governor").observed_value, "performance, powersave");
  EXPECT_NE(run_check("governor").remedy, "");
}

TEST_F(MachineChecks, RequiredButUnknownChecksFail) {
  spec_.required_checks = {"governor"};
  const std::vector<CheckOutcome> outcomes = check_machine({directory_.path()}, spec_, idle_, sensors_);
  const CheckOutcome* const failure = first_failed_requirement(outcomes);
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->check_name, "governor");
}

TEST_F(MachineChecks, ReportsSwapInUse) {
  write("proc/meminfo", "SwapTotal:       2048 kB\nSwapFree:        2048 kB\n");
  EXPECT_EQ(run_check("swap").state, CheckState::passed);
  write("proc/meminfo", "SwapTotal:    4194304 kB\nSwapFree:        2048 kB\n");
  EXPECT_EQ(run_check("swap").state, CheckState::warned);
}

TEST_F(MachineChecks, ReportsCoTenantsAndHighTemperature) {
  EXPECT_EQ(run_check("gpu_processes").state, CheckState::passed);
  idle_->co_tenant_gpu_share = 0.3;
  EXPECT_EQ(run_check("gpu_processes").state, CheckState::warned);
  idle_->throttle_reasons = 0x4;  // power cap, which is not thermal
  EXPECT_EQ(run_check("throttling").state, CheckState::passed);
  idle_->throttle_reasons = 0x20;
  EXPECT_EQ(run_check("throttling").state, CheckState::warned);
  idle_->temperatures_c = {{"gpu0", 91}, {"coretemp/Package id 0", 40}};
  EXPECT_EQ(run_check("temperature").state, CheckState::warned);
}

DomainEnergy idle_domain(std::string name, double mean_w, Provenance provenance = Provenance::measured) {
  DomainEnergy domain;
  domain.name = std::move(name);
  domain.joules = domain.mean_w = mean_w;
  domain.provenance = provenance;
  domain.is_counted = true;
  return domain;
}

TEST(CoolDown, CoolDownUsesMeasuredPowerAndNoEstimates) {
  IdleState baseline;
  baseline.domain_powers = {idle_domain("gpu0", 100), idle_domain("package-0", 10, Provenance::estimated)};
  IdleState current = baseline;
  current.domain_powers[1] = idle_domain("package-0", 300, Provenance::estimated);
  EXPECT_TRUE(has_cooled_down(current, baseline, {}));
  EXPECT_EQ(preferred_power(compare_idle_powers(current, baseline).current_w), 100);
  current.domain_powers[0] = idle_domain("gpu0", 150);
  EXPECT_FALSE(has_cooled_down(current, baseline, {}));
  const std::vector<DomainEnergy> estimates = {idle_domain("package-0", 300, Provenance::estimated)};
  baseline.domain_powers.erase(baseline.domain_powers.begin());
  current.domain_powers = estimates;
  EXPECT_FALSE(has_cooled_down(current, baseline, {})) << "without a measurement estimates have to do";
}

TEST(CoolDown, CoolDownComparesTheDomainsOfBothReadings) {
  IdleState baseline;
  baseline.domain_powers = {idle_domain("gpu0", 100), idle_domain("gpu1", 100)};
  IdleState current;
  current.domain_powers = {idle_domain("gpu0", 150)};  // gpu1 is missing: 150 W must not be compared with 200 W
  EXPECT_FALSE(has_cooled_down(current, baseline, {}));
}

TEST(CoolDown, CoolDownEndsWhenPowerAndEveryTemperatureAreNearTheBaseline) {
  const CoolDownSpec spec;
  IdleState baseline;
  baseline.domain_powers = {idle_domain("gpu0", 100)};
  baseline.temperatures_c = {{"gpu0", 35}, {"cpu", 40}};
  IdleState current = baseline;
  EXPECT_TRUE(has_cooled_down(current, baseline, spec));
  current.domain_powers = {idle_domain("gpu0", 115)};
  EXPECT_FALSE(has_cooled_down(current, baseline, spec)) << "more than a tenth above";
  current.domain_powers = {idle_domain("gpu0", 105)};
  current.temperatures_c["gpu0"] = 48;
  EXPECT_FALSE(has_cooled_down(current, baseline, spec)) << "one of two is warm";
  current.temperatures_c["gpu0"] = 39;
  EXPECT_TRUE(has_cooled_down(current, baseline, spec));
}

TEST(CoolDown, CoolDownDoesNotWaitForUnknownValues) {
  IdleState baseline;
  baseline.temperatures_c = {{"gpu0", 35}};
  EXPECT_TRUE(has_cooled_down({}, baseline, CoolDownSpec{}));
}

TEST(RowMetrics, ParsesNumbersThatThePatternMatches) {
  const std::string text = "epoch 1 accuracy=0.25\nnoise\nepoch 2 accuracy=0.75\nepoch 3 accuracy=0.5\n";
  const std::vector<double> matched_numbers = extract_matched_numbers(text, "accuracy=([0-9.]+)");
  EXPECT_EQ(matched_numbers, (std::vector<double>{0.25, 0.75, 0.5}));
  EXPECT_EQ(reduce_values(MetricReduction::last, matched_numbers), 0.5);
  EXPECT_EQ(reduce_values(MetricReduction::highest, matched_numbers), 0.75);
  EXPECT_EQ(reduce_values(MetricReduction::mean, matched_numbers), 0.5);
  EXPECT_EQ(reduce_values(MetricReduction::last, std::vector<double>{}), std::nullopt);
}

}  // namespace
}  // namespace joulemap::experiment

// SPDX-License-Identifier: Apache-2.0
#include "predict/model/network_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "predict/fit/fitting.h"

namespace joulemap::predict {
namespace {

constexpr double kKernelCost_s = 7e-6;
constexpr double kPythonCallCost_s = 1e-6;
constexpr double kIdleW = 120;

NetworkOperationSums make_host_bound_sums(double kernels, double python) {
  NetworkOperationSums sums;
  sums.call_count = kernels / 2;
  sums.launch_count_sum = kernels;
  sums.python_call_count = python;
  sums.gpu_s = kernels * 1e-6;
  return sums;
}

// Networks that wait for a host on which every kernel takes 7 us and every call of a Python function 1 us.
struct HostBoundNetworks {
  std::vector<MeasuredNetwork> measured;
  std::vector<NetworkObservation> rows;

  HostBoundNetworks() {
    measured.reserve(40);
    for (int index = 0; index < 40; ++index) {
      const double kernels = 50 + 37 * (index % 8);
      const double python = 100 + 211 * (index % 5);
      MeasuredNetwork measured_network;
      measured_network.machine.host_factor = index % 2 == 0 ? 1.0 : 1.5;
      measured_network.time_s =
          (kKernelCost_s * kernels + kPythonCallCost_s * python) * measured_network.machine.host_factor;
      measured_network.issue_s = measured_network.time_s / 1.06;
      measured_network.busy_s = 1e-6 * kernels;
      measured_network.energy_j = kIdleW * measured_network.time_s;
      measured.push_back(measured_network);
      rows.push_back({nullptr, make_host_bound_sums(kernels, python)});
    }
    for (std::size_t index = 0; index < rows.size(); ++index) rows[index].network = &measured[index];
  }
};

NetworkModel fitted() {
  const HostBoundNetworks networks;
  NetworkModel start;
  start.idle_w = kIdleW;
  return fit_network_model(networks.rows, start);
}

TEST(NetworkModel, HostTimeGrowsWithKernelsAndPythonCalls) {
  const NetworkModel model = fitted();
  const NetworkEstimate baseline_estimate = estimate_network(model, make_host_bound_sums(200, 400), {});
  const NetworkEstimate estimate_with_more_python = estimate_network(model, make_host_bound_sums(200, 1400), {});
  EXPECT_NEAR(baseline_estimate.host_s, 200 * kKernelCost_s + 400 * kPythonCallCost_s, 0.06 * baseline_estimate.host_s);
  EXPECT_NEAR(estimate_with_more_python.host_s - baseline_estimate.host_s, 1000 * kPythonCallCost_s,
              0.2 * 1000 * kPythonCallCost_s);
}

TEST(NetworkModel, ASlowerHostTakesLongerWhileTheGpuIdles) {
  const NetworkModel model = fitted();
  const NetworkEstimate fast_host_estimate = estimate_network(model, make_host_bound_sums(200, 400), {});
  const NetworkEstimate slow_host_estimate =
      estimate_network(model, make_host_bound_sums(200, 400), {.host_factor = 2});
  EXPECT_NEAR(slow_host_estimate.time_s, 2 * fast_host_estimate.time_s, 0.01 * slow_host_estimate.time_s);
  EXPECT_NEAR(slow_host_estimate.energy_j - fast_host_estimate.energy_j, model.idle_w * fast_host_estimate.time_s,
              0.02 * fast_host_estimate.energy_j);
}

// The measured energy of networks is 5 % more than the sum of operations (60 J above idle) and idle energy. The fit
// must explain this by the scale of operations and leave idle power unchanged.
TEST(NetworkModel, FittingPreservesIdlePowerAndSplitsEnergiesLikePredictions) {
  std::vector<MeasuredNetwork> measured(20);
  std::vector<NetworkObservation> rows;
  for (std::size_t index = 0; index < measured.size(); ++index) {
    measured[index].time_s = 0.1 + 0.05 * static_cast<double>(index);
    measured[index].busy_s = measured[index].time_s;
    NetworkOperationSums sums;
    sums.gpu_s = measured[index].time_s;
    sums.above_idle_j[0] = 60;
    measured[index].energy_j = 1.05 * (sums.above_idle_j[0] + kIdleW * measured[index].time_s);
    rows.push_back({&measured[index], sums});
  }
  NetworkModel start;
  start.idle_w = kIdleW;
  const NetworkModel model = fit_network_model(rows, start);
  EXPECT_EQ(model.idle_w, kIdleW);
  EXPECT_GT(model.energy_scales[0], 1.05);
}

TEST(NetworkModel, HigherIdlePowerAppliesToTheWholeStep) {
  const NetworkModel model = fitted();
  const NetworkEstimate mean = estimate_network(model, make_host_bound_sums(200, 400), {});
  const NetworkEstimate high_idle_estimate =
      estimate_network(model, make_host_bound_sums(200, 400), {.idle_offset_w = 10});
  EXPECT_DOUBLE_EQ(high_idle_estimate.time_s, mean.time_s);
  EXPECT_NEAR(high_idle_estimate.energy_j - mean.energy_j, 10 * mean.time_s, 1e-9);
}

TEST(NetworkModel, AGraphWithoutPythonCallsGetsTheUsualCount) {
  const NetworkModel model = fitted();
  EXPECT_GT(estimate_network(model, make_host_bound_sums(200, 0), {}).host_s,
            200 * kKernelCost_s + 100 * kPythonCallCost_s);
}

TEST(NetworkModel, AtThePowerLimitAStepTakesLongerAtTheSamePower) {
  NetworkModel model;
  model.idle_w = kIdleW;
  model.power_limit_w = 700;
  NetworkOperationSums sums;
  sums.gpu_s = 1;
  sums.above_idle_j[0] = 1000;
  const NetworkEstimate network_estimate = estimate_network(model, sums, {});
  EXPECT_GT(network_estimate.time_s, 1.5);
  EXPECT_NEAR(network_estimate.energy_j / network_estimate.time_s, 700, 1e-6);
}

constexpr std::string_view kOperationListsCsv =
    "id,kind,parameters,dtype,pass,phase\n0,add,form=same;batch=1;rows=8;width=8,fp32,forward,forward\n";

struct SyntheticTables {
  std::string networks = "kind,parameters,dtype,pass,source,time_s,energy_j,slice,issue_s,launch_s,quiet_windows\n";
  std::string busy = "setting,busy_s\n";
  std::string settings = "network,family,package,batch,size,dtype,pass,unknown,operations,python_calls\n";

  void list(std::string_view name, double busy_s) {
    settings += fmt::format("{},F,timm,8,224,fp32,inference,,0:1,40\n", name);
    busy += fmt::format("timm/{} 8x224 fp32 inference,{}\n", name, busy_s);
  }
  void add(std::string_view name, double time_s, std::string_view slice, std::string_view launch_s,
           double issue_fraction = 1 / 1.06, std::string_view idle_host_windows = "") {  // issued: fraction of the time
    networks += fmt::format("network,name={};package=timm;batch=8;size=224,fp32,inference,F,{},1,{},{},{},{}\n", name,
                            time_s, slice, launch_s.empty() ? "" : fmt::format("{}", time_s * issue_fraction), launch_s,
                            idle_host_windows);
  }
  NetworkTable read(double fastest_launch_s = 0) const {
    Result<NetworkTable> table =
        parse_measured_networks({networks, busy, kOperationListsCsv, settings}, fastest_launch_s);
    EXPECT_TRUE(table);
    return table ? std::move(*table) : NetworkTable{};
  }
};

TEST(NetworkTables, UsesOnlyIdleHostRowsOfASetting) {
  SyntheticTables synthetic_tables;
  synthetic_tables.list("waits", 0.002);
  synthetic_tables.add("waits", 0.010, "old", "");
  synthetic_tables.add("waits", 0.005, "run", "6e-6");
  synthetic_tables.add("waits", 0.009, "run", "9e-6");
  const NetworkTable table = synthetic_tables.read();
  ASSERT_EQ(table.networks.size(), 1U);
  EXPECT_DOUBLE_EQ(table.networks[0].time_s, 0.005);
  EXPECT_DOUBLE_EQ(table.networks[0].python_call_count, 40);
}

TEST(NetworkTables, ARunWithoutAnIdleHostWindowIsDisturbed) {
  SyntheticTables synthetic_tables;
  synthetic_tables.list("waits", 0.002);
  synthetic_tables.add("waits", 0.005, "run", "6e-6", 0.9, "0");
  synthetic_tables.add("waits", 0.004, "run", "6.5e-6", 0.9, "8");
  const NetworkTable table = synthetic_tables.read();
  ASSERT_EQ(table.networks.size(), 1U);
  EXPECT_DOUBLE_EQ(table.networks[0].time_s, 0.004);
}

TEST(NetworkTables, FindsTheHostFactorBySettingsThatTwoHostsShare) {
  SyntheticTables synthetic_tables;
  for (int index = 0; index < 9; ++index) {
    const std::string name = fmt::format("n{}", index);
    synthetic_tables.list(name, 0.001);
    synthetic_tables.add(name, 0.005 + 0.001 * index, "one", "6e-6");
    synthetic_tables.add(name, 1.2 * (0.005 + 0.001 * index), "other", "6e-6");
  }
  synthetic_tables.list("alone", 0.001);
  synthetic_tables.add("alone", 0.006, "other", "6e-6");
  synthetic_tables.list("beside", 0.001);
  synthetic_tables.add("beside", 0.006, "one", "6e-6");
  const NetworkTable table = synthetic_tables.read();
  ASSERT_EQ(table.networks.size(), 11U);
  EXPECT_NEAR(table.networks[9].machine.host_factor / table.networks[10].machine.host_factor, 1.2, 1e-3);
}

TEST(NetworkTables, TheNoiseFloorUsesOnlyValidRows) {
  SyntheticTables synthetic_tables;
  synthetic_tables.list("waits", 0.002);
  synthetic_tables.add("waits", 0.005, "run", "6e-6");
  synthetic_tables.add("waits", 0.009, "run", "6e-6",
                       0.5);  // 1.8 x the other measurement and 2 x its issue time: disturbed
  EXPECT_EQ(compute_network_noise_floor(synthetic_tables.networks, synthetic_tables.busy)->operations, 0U);
  synthetic_tables.add("waits", 0.0051, "run", "6e-6");
  const Result<NoiseFloor> floor = compute_network_noise_floor(synthetic_tables.networks, synthetic_tables.busy);
  EXPECT_EQ(floor->operations, 1U);
  EXPECT_NEAR(floor->time, 0.02 / std::sqrt(2), 1e-3);
}

TEST(NetworkTables, ListsAndExcludesSettingsOfADisturbedHost) {
  SyntheticTables synthetic_tables;
  synthetic_tables.list("waits", 0.002);
  synthetic_tables.list("works", 0.0099);
  synthetic_tables.list("quick", 0.002);
  synthetic_tables.add("waits", 0.010, "run", "9e-6");
  synthetic_tables.add("works", 0.010, "old", "");
  synthetic_tables.add("quick", 0.005, "run", "6e-6");
  const NetworkTable table = synthetic_tables.read();
  EXPECT_EQ(table.networks.size(), 2U);
  EXPECT_EQ(table.disturbed_settings, std::vector<std::string>{"waits|8|224|fp32|inference"});
}

TEST(NetworkTables, ListsAndExcludesASettingWithAnUnknownOperation) {
  SyntheticTables synthetic_tables;
  synthetic_tables.list("known", 0.009);
  synthetic_tables.list("mystery", 0.009);
  synthetic_tables.settings.replace(synthetic_tables.settings.rfind(",,0:1,"), 6, ",acme.fast,0:1 1:2,");
  synthetic_tables.add("known", 0.010, "run", "6e-6");
  synthetic_tables.add("mystery", 0.010, "run", "6e-6");
  const std::string operation_lists =
      std::string(kOperationListsCsv) + "1,unknown,batch=1;rows=1;width=8;in=8;out=8,fp32,forward,forward\n";
  const Result<NetworkTable> table = parse_measured_networks(
      {synthetic_tables.networks, synthetic_tables.busy, operation_lists, synthetic_tables.settings});
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->networks.size(), 1U);
  EXPECT_EQ(table->networks[0].name, "known");
  EXPECT_EQ(table->excluded_settings, std::vector<std::string>{"timm/mystery 8x224 fp32 inference"});
}

TEST(NetworkTables, AnUnexplainedStepIsDisturbed) {
  SyntheticTables synthetic_tables;
  for (const std::string_view name : {"host", "gpu", "neither"})
    synthetic_tables.list(name, name == "gpu" ? 0.0095 : 0.002);
  synthetic_tables.add("host", 0.010, "run", "6e-6", 0.9);
  synthetic_tables.add("gpu", 0.010, "run", "6e-6", 0.2);
  synthetic_tables.add("neither", 0.010, "run", "6e-6", 0.6);
  const NetworkTable table = synthetic_tables.read();
  EXPECT_EQ(table.networks.size(), 2U);
  EXPECT_EQ(table.disturbed_settings, std::vector<std::string>{"neither|8|224|fp32|inference"});
}

TEST(NetworkTables, ARowWithSlowerLaunchesHasASlowerHost) {
  SyntheticTables synthetic_tables;
  synthetic_tables.list("one", 0.002);
  synthetic_tables.list("two", 0.002);
  synthetic_tables.add("one", 0.005, "fast", "6e-6");
  synthetic_tables.add("two", 0.006, "slow", "9e-6");
  synthetic_tables.list("three", 0.002);
  synthetic_tables.add("three", 0.0055, "fast", "6.6e-6");
  const NetworkTable table = synthetic_tables.read();
  ASSERT_EQ(table.networks.size(), 3U);
  EXPECT_DOUBLE_EQ(table.networks[0].machine.host_factor, 1);
  EXPECT_NEAR(table.networks[1].machine.host_factor, 1.5, 1e-9);
  EXPECT_NEAR(table.networks[2].machine.host_factor, 1.1, 1e-9);
}

TEST(NetworkTables, HeldOutHostsAreScaledByAGivenFastestLaunch) {
  SyntheticTables synthetic_tables;
  synthetic_tables.list("one", 0.002);
  synthetic_tables.add("one", 0.005, "slow", "9e-6");
  EXPECT_DOUBLE_EQ(synthetic_tables.read().networks.at(0).machine.host_factor, 1);
  EXPECT_NEAR(synthetic_tables.read(6e-6).networks.at(0).machine.host_factor, 1.5, 1e-9);
  EXPECT_DOUBLE_EQ(synthetic_tables.read().fastest_launch_s, 9e-6);
}

}  // namespace
}  // namespace joulemap::predict

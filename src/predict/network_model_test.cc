// SPDX-License-Identifier: Apache-2.0
#include "predict/network_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "predict/fitting.h"

namespace joulemap::predict {
namespace {

constexpr double kKernel = 7e-6;
constexpr double kPython = 1e-6;
constexpr double kIdleW = 120;

NetworkSums launching(double kernels, double python) {
  NetworkSums sums;
  sums.calls = kernels / 2;
  sums.launches = kernels;
  sums.python = python;
  sums.gpu_s = kernels * 1e-6;
  return sums;
}

// Networks that wait for a host of which every kernel takes 7 us and every call of a Python function 1 us.
struct WaitingNetworks {
  std::vector<MeasuredNetwork> measured;
  std::vector<NetworkRow> rows;

  WaitingNetworks() {
    measured.reserve(40);
    for (int index = 0; index < 40; ++index) {
      const double kernels = 50 + 37 * (index % 8);
      const double python = 100 + 211 * (index % 5);
      MeasuredNetwork one;
      one.host_factor = index % 2 == 0 ? 1.0 : 1.5;
      one.time_s = (kKernel * kernels + kPython * python) * one.host_factor;
      one.issue_s = one.time_s / 1.06;
      one.busy_s = 1e-6 * kernels;
      one.energy_j = kIdleW * one.time_s;
      measured.push_back(one);
      rows.push_back({nullptr, launching(kernels, python)});
    }
    for (std::size_t index = 0; index < rows.size(); ++index) rows[index].network = &measured[index];
  }
};

NetworkModel fitted() {
  const WaitingNetworks networks;
  NetworkModel start;
  start.idle_w = kIdleW;
  return fit_network_model(networks.rows, start);
}

TEST(NetworkModel, AHostTakesItsTimeForKernelsAndForPython) {
  const NetworkModel model = fitted();
  const NetworkEstimate few = estimate_network(model, launching(200, 400), 1);
  const NetworkEstimate more_python = estimate_network(model, launching(200, 1400), 1);
  EXPECT_NEAR(few.host_s, 200 * kKernel + 400 * kPython, 0.06 * few.host_s);
  EXPECT_NEAR(more_python.host_s - few.host_s, 1000 * kPython, 0.2 * 1000 * kPython);
}

TEST(NetworkModel, ASlowerHostTakesLongerAndTheGpuWaitsAtRest) {
  const NetworkModel model = fitted();
  const NetworkEstimate fast = estimate_network(model, launching(200, 400), 1);
  const NetworkEstimate slow = estimate_network(model, launching(200, 400), 2);
  EXPECT_NEAR(slow.time_s, 2 * fast.time_s, 0.01 * slow.time_s);
  EXPECT_NEAR(slow.energy_j - fast.energy_j, model.idle_w * fast.time_s, 0.02 * fast.energy_j);
}

TEST(NetworkModel, AGraphWithoutPythonHasAsMuchOfItAsOthersHave) {
  const NetworkModel model = fitted();
  EXPECT_GT(estimate_network(model, launching(200, 0), 1).host_s, 200 * kKernel + 100 * kPython);
}

TEST(NetworkModel, AtThePowerLimitAStepTakesLongerAndDrawsNoMore) {
  NetworkModel model;
  model.idle_w = kIdleW;
  model.power_limit_w = 700;
  NetworkSums sums;
  sums.gpu_s = 1;
  sums.above_j[0] = 1000;
  const NetworkEstimate guess = estimate_network(model, sums, 1);
  EXPECT_GT(guess.time_s, 1.5);
  EXPECT_NEAR(guess.energy_j / guess.time_s, 700, 1e-6);
}

constexpr std::string_view kLists =
    "id,kind,parameters,dtype,pass,phase\n0,add,form=same;batch=1;rows=8;width=8,fp32,forward,forward\n";

struct MadeUpTables {
  std::string networks = "kind,parameters,dtype,pass,source,time_s,energy_j,slice,issue_s,launch_s\n";
  std::string busy = "setting,busy_s\n";
  std::string settings = "network,family,package,batch,size,dtype,pass,unknown,operations,python_calls\n";

  void list(std::string_view name, double busy_s) {
    settings += fmt::format("{},F,timm,8,224,fp32,inference,,0:1,40\n", name);
    busy += fmt::format("timm/{} 8x224 fp32 inference,{}\n", name, busy_s);
  }
  void add(std::string_view name, double time_s, std::string_view slice, std::string_view launch_s,
           double issued = 1 / 1.06) {  // of the time
    networks += fmt::format("network,name={};package=timm;batch=8;size=224,fp32,inference,F,{},1,{},{},{}\n", name,
                            time_s, slice, launch_s.empty() ? "" : fmt::format("{}", time_s * issued), launch_s);
  }
  NetworkTable read() const {
    Result<NetworkTable> table = read_networks_tables(networks, busy, kLists, settings);
    EXPECT_TRUE(table);
    return table ? std::move(*table) : NetworkTable{};
  }
};

TEST(NetworkTables, OfASettingOnlyWhatFoundTheHostAloneCounts) {
  MadeUpTables made;
  made.list("waits", 0.002);
  made.add("waits", 0.010, "old", "");
  made.add("waits", 0.005, "run", "6e-6");
  made.add("waits", 0.009, "run", "9e-6");
  const NetworkTable table = made.read();
  ASSERT_EQ(table.networks.size(), 1U);
  EXPECT_DOUBLE_EQ(table.networks[0].time_s, 0.005);
  EXPECT_DOUBLE_EQ(table.networks[0].python, 40);
}

TEST(NetworkTables, WhatWaitedForADisturbedHostIsNamedAndNotLearnedFrom) {
  MadeUpTables made;
  made.list("waits", 0.002);
  made.list("works", 0.0099);
  made.list("quick", 0.002);
  made.add("waits", 0.010, "run", "9e-6");
  made.add("works", 0.010, "old", "");
  made.add("quick", 0.005, "run", "6e-6");
  const NetworkTable table = made.read();
  EXPECT_EQ(table.networks.size(), 2U);
  EXPECT_EQ(table.disturbed, std::vector<std::string>{"waits|8|224|fp32|inference"});
}

TEST(NetworkTables, AStepThatNeitherHostNorGpuExplainsWasDisturbed) {
  MadeUpTables made;
  for (const std::string_view name : {"host", "gpu", "neither"}) made.list(name, name == "gpu" ? 0.0095 : 0.002);
  made.add("host", 0.010, "run", "6e-6", 0.9);
  made.add("gpu", 0.010, "run", "6e-6", 0.2);
  made.add("neither", 0.010, "run", "6e-6", 0.6);
  const NetworkTable table = made.read();
  EXPECT_EQ(table.networks.size(), 2U);
  EXPECT_EQ(table.disturbed, std::vector<std::string>{"neither|8|224|fp32|inference"});
}

TEST(NetworkTables, ARowWithSlowerLaunchesHasASlowerHost) {
  MadeUpTables made;
  made.list("one", 0.002);
  made.list("two", 0.002);
  made.add("one", 0.005, "fast", "6e-6");
  made.add("two", 0.006, "slow", "9e-6");
  made.list("three", 0.002);
  made.add("three", 0.0055, "fast", "6.6e-6");
  const NetworkTable table = made.read();
  ASSERT_EQ(table.networks.size(), 3U);
  EXPECT_DOUBLE_EQ(table.networks[0].host_factor, 1);
  EXPECT_NEAR(table.networks[1].host_factor, 1.5, 1e-9);
  EXPECT_NEAR(table.networks[2].host_factor, 1.1, 1e-9);
}

}  // namespace
}  // namespace joulemap::predict

// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_times.h"

#include <gtest/gtest.h>

namespace joulemap {
namespace {

constexpr double kTicksPerSecond = 100;

TEST(MachineCpuTime, CountsEverythingButIdleWaitingAndStolenTimeAsBusy) {
  const Result<MachineCpuTime> time = parse_machine_cpu_time(
      "cpu  100 20 300 4000 500 60 7 800 90 10\n"
      "cpu0 50 10 150 2000 250 30 3 400 45 5\n"
      "cpu1 50 10 150 2000 250 30 4 400 45 5\n"
      "intr 12345\n",
      kTicksPerSecond);
  ASSERT_TRUE(time.has_value());
  EXPECT_DOUBLE_EQ(time->busy_s, 4.87);
  EXPECT_EQ(time->cpus, 2);
}

TEST(MachineCpuTime, AcceptsTheFourFieldsOfOldKernels) {
  const Result<MachineCpuTime> time = parse_machine_cpu_time("cpu 1 2 3 4\n", kTicksPerSecond);
  ASSERT_TRUE(time.has_value());
  EXPECT_DOUBLE_EQ(time->busy_s, 0.06);
  EXPECT_EQ(time->cpus, 1);
}

TEST(MachineCpuTime, RefusesGarbage) {
  for (const char* text : {"", "cpu", "cpu a b c d", "intr 1 2 3", "cpu0 1 2 3 4", "cpu -1 2 3 4"}) {
    EXPECT_FALSE(parse_machine_cpu_time(text, kTicksPerSecond).has_value()) << text;
  }
}

TEST(ProcessCpuTime, ReadsPastACommandNameFullOfParentheses) {
  const Result<ProcessCpuTime> process = parse_process_cpu_time(
      "42 (a) b (c)\n) R 7 42 7 0 -1 4194304 100 0 0 0 150 50 30 20 20 0 1 0 100 1000 10", kTicksPerSecond);
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->pid, 42);
  EXPECT_EQ(process->parent, 7);
  EXPECT_DOUBLE_EQ(process->process_cpu_s, 2.0);
  EXPECT_DOUBLE_EQ(process->reaped_children_cpu_s, 0.5);
}

TEST(ProcessCpuTime, RefusesATruncatedLine) {
  EXPECT_FALSE(parse_process_cpu_time("42 (sh) R 7 42", kTicksPerSecond).has_value());
  EXPECT_FALSE(parse_process_cpu_time("", kTicksPerSecond).has_value());
}

TEST(ProcessTree, SumsCpuTimeOfLiveAndReapedProcesses) {
  const std::vector<ProcessCpuTime> processes = {
      {1, 0, 100, 100}, {10, 1, 1, 0.5}, {11, 10, 2, 0}, {12, 11, 4, 0.25}, {20, 1, 50, 0}};
  const Result<double> total = process_tree_cpu_s(processes, 10);
  ASSERT_TRUE(total.has_value());
  EXPECT_DOUBLE_EQ(*total, 7.75);
}

TEST(ProcessTree, TerminatesOnACycleAndReportsAMissingRoot) {
  const std::vector<ProcessCpuTime> processes = {{10, 11, 1, 0}, {11, 10, 2, 0}};
  EXPECT_DOUBLE_EQ(process_tree_cpu_s(processes, 10).value(), 3.0);
  EXPECT_FALSE(process_tree_cpu_s(processes, 99).has_value());
}

}  // namespace
}  // namespace joulemap

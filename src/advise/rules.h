// SPDX-License-Identifier: Apache-2.0
//
// What rules share: the run they judge, and how an amount of energy becomes an expected saving. Internal to src/advise.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "advise/advise.h"

namespace joulemap::advise {

struct EnergyWithInterval {
  double energy_j = 0;
  double low_j = 0;
  double high_j = 0;
  double time_s = 0;
  void add(const std::optional<double>& joules, const std::optional<double>& low, const std::optional<double>& high,
           double seconds);
};

// Fraction of the concerned energy that a change saves: expected value and range, from programs with a known waste
// whose saving was measured (bench/h200/advise.py, bench/advise/cpu.py). Above 1 where the change also saves what
// surrounds the waste. The ranges are wide: the ledger shows what a waste costs, not how much of it a particular
// program can avoid.
struct SavedEnergyFraction {
  double expected_fraction = 0;
  double low = 0;
  double high = 0;
};

struct RuleContext {
  const AdviceInput& reports;
  double energy_j = 0;    // of the examined part: of the GPUs without probing, or of the program on the CPU
  double step_count = 0;  // 0: unknown
  double fraction_of_run_energy(double joules) const { return energy_j > 0 ? joules / energy_j : 0; }
};

// The finding with its savings; the caller adds title, change and evidence.
Finding make_finding(std::string_view rule, const EnergyWithInterval& affected_energy,
                     const SavedEnergyFraction& saved);

// Rows of the program itself: neither probing nor other processes.
bool is_measured_program_row(const ReportRow& row);
bool is_gpu_device(std::string_view device);
bool is_cpu_device(std::string_view device);

// The module in the path of a row: {"train", "forward", module, ...}; empty: none.
std::string enclosing_module_name(const ReportRow& row);
// Modules that call softmax and multiply matrices themselves, not in a submodule: attention from single operations.
std::set<std::string> find_attention_modules(const ReportResult& operator_report, bool (*is_device)(std::string_view));

// Energy of the rows that the rules for CPUs judge.
double cpu_program_energy_j(const ReportResult& result);

// Findings of any size, in the order of the rules.
std::vector<Finding> collect_waiting_findings(const RuleContext& run);
std::vector<Finding> collect_kernel_findings(const RuleContext& run);
std::vector<Finding> collect_cpu_findings(const RuleContext& run);

}  // namespace joulemap::advise

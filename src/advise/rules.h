// SPDX-License-Identifier: Apache-2.0
//
// What rules share: the run they judge, and how an amount of energy becomes an expected saving. Internal to src/advise.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "advise/advise.h"

namespace joulemap::advise {

struct Amount {
  double energy_j = 0;
  double low_j = 0;
  double high_j = 0;
  double time_s = 0;
  void add(const std::optional<double>& joules, const std::optional<double>& low, const std::optional<double>& high,
           double seconds);
};

// Fraction of the concerned energy that a change saves: expected value and range, from programs with a known waste whose
// saving was measured on an H200 (bench/h200/advise.py). Above 1 where the change also saves what surrounds the waste.
// The ranges are wide: the ledger shows what a waste costs, not how much of it a particular program can avoid.
struct SavedFraction {
  double expected = 0;
  double low = 0;
  double high = 0;
};

struct Run {
  const AdviceInput& input;
  double energy_j = 0;  // GPU energy of the examined part without probing
  double steps = 0;     // 0: unknown
  double share(double joules) const { return energy_j > 0 ? joules / energy_j : 0; }
};

// The finding with its savings; the caller adds title, change and evidence.
Finding finding_of(std::string_view rule, const Amount& amount, const SavedFraction& saved);

// Rows of the program itself: neither probing nor other processes.
bool is_program_row(const ReportRow& row);
bool is_gpu(std::string_view device);

// Findings of any size, in the order of the rules.
std::vector<Finding> waiting_findings(const Run& run);
std::vector<Finding> kernel_findings(const Run& run);

}  // namespace joulemap::advise

// SPDX-License-Identifier: Apache-2.0
//
// Validators of option values. Unlike them, CLI11's checks accept NaN in any range, and -3 as a large unsigned number.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace joulemap::cli {

// Accepts a finite number from `low` to `high`.
CLI::Validator check_number_between(double low, double high);

// Accepts decimal digits without a sign, from `low` to `high`.
CLI::Validator check_whole_number(std::uint64_t low = 0, std::uint64_t high = 1'000'000'000'000'000'000);

// Makes all options of `app` and its verbs reject an empty value, as from an unset variable in a script.
void reject_empty_values(CLI::App& app);

}  // namespace joulemap::cli

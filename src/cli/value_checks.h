// SPDX-License-Identifier: Apache-2.0
//
// Validators of option values. CLI11's own checks accept NaN in any range, and -3 as a large unsigned number.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace joulemap::cli {

// A finite number from `low` to `high`.
CLI::Validator number_between(double low, double high);

// Decimal digits without a sign, from `low` to `high`.
CLI::Validator whole_number(std::uint64_t low = 0, std::uint64_t high = 1'000'000'000'000'000'000);

// Makes options of `app` and of all its verbs reject an empty value, such as an unset variable of a script.
void reject_empty_values(CLI::App& app);

}  // namespace joulemap::cli

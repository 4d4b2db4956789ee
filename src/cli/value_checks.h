// SPDX-License-Identifier: Apache-2.0
//
// Validators of option values. Unlike them, CLI11's checks accept NaN in any range, and -3 as a large unsigned number.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace joulemap::cli {

// Accepts a finite number from `low` to `high`.
CLI::Validator number_range_validator(double low, double high);

// Accepts decimal digits without a sign, from `low` to `high`.
CLI::Validator whole_number_validator(std::uint64_t low = 0, std::uint64_t high = 1'000'000'000'000'000'000);

// Accepts one of these words. The message for another word names the nearest one.
CLI::Validator word_choice_validator(const std::vector<std::string>& words);

// Makes all options of `app` and its verbs reject an empty value, as from an unset variable in a script.
void reject_empty_values(CLI::App& app);

}  // namespace joulemap::cli

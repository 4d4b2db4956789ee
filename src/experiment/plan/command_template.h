// SPDX-License-Identifier: Apache-2.0
//
// From the command of a plan to the command of a row: {factor} becomes the row's level, and {row}, {block}, {seed}, {folder}
// what they say. In a list of words a level stays within its word whatever it holds; in a text for the shell it is quoted
// so that the shell takes it as it is. `${NAME}` and braces around anything but a name are left alone; {{name}} means
// {name}. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "experiment/plan/experiment_spec.h"

namespace joulemap::experiment {

// What the placeholders of one row stand for.
using PlaceholderValues = std::vector<std::pair<std::string, std::string>>;

struct RowPlace {
  std::size_t row = 0;
  std::size_t block = 0;
  std::uint64_t seed = 0;  // of this row: the experiment's and its number, mixed
  std::string folder;      // of the attempt
};
PlaceholderValues placeholder_values(std::span<const ExperimentFactor> factors, std::span<const std::size_t> levels,
                                     const RowPlace& place);

bool is_reserved_placeholder(std::string_view name);
std::string_view reserved_placeholders();  // "row, block, ..."

// Whether every placeholder is known, and each stands where the shell takes a quoted word as it is.
Status check_template(const CommandSpec& command, std::span<const ExperimentFactor> factors);

// The words to execute; a text becomes sh -c TEXT.
std::vector<std::string> filled_command(const CommandSpec& command, const PlaceholderValues& values);
std::string filled_text(std::string_view text, const PlaceholderValues& values);

}  // namespace joulemap::experiment

// SPDX-License-Identifier: Apache-2.0
//
// Expands the command of a plan into the command of a row. {factor} becomes the row's level; {row}, {block}, {seed} and
// {folder} become the values of RowContext. In a word list, a level stays within its word whatever it contains. In a
// shell text, it is quoted so that the shell passes it unchanged. `${NAME}` and braces around anything but a name are
// left alone; {{name}} means {name}. Pure.
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

// (placeholder name, value) pairs of one row.
using PlaceholderValues = std::vector<std::pair<std::string, std::string>>;

struct RowContext {
  std::size_t row_number = 0;
  std::size_t block_number = 0;
  std::uint64_t row_seed = 0;  // seed of this row, mixed from the experiment's seed and the row number
  std::string attempt_folder;  // folder of the attempt
};
PlaceholderValues make_placeholder_values(std::span<const ExperimentFactor> factors,
                                          std::span<const std::size_t> levels, const RowContext& context);

bool is_reserved_placeholder(std::string_view name);
std::string_view reserved_placeholders();  // "row, block, ..."

// Checks that every placeholder is known, and that the shell passes a quoted word unchanged at each placeholder.
Status check_command_template(const CommandSpec& command, std::span<const ExperimentFactor> factors);

// Names of factors with several levels whose placeholder is neither in the command nor in the environment: their levels do
// not change what runs. Empty without a command.
std::vector<std::string> find_unused_factors(const ExperimentSpec& spec);

// Returns the argument vector to execute; a shell text becomes sh -c TEXT.
std::vector<std::string> expand_command(const CommandSpec& command, const PlaceholderValues& values);
std::string expand_placeholders(std::string_view text, const PlaceholderValues& values);

}  // namespace joulemap::experiment

// SPDX-License-Identifier: Apache-2.0
#include "cli/value_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/nearest_word.h"
#include "base/text.h"

namespace joulemap::cli {
namespace {

bool has_digits_only(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string invalid_value_message(const std::string& text, const std::string& allowed_values) {
  return fmt::format("{} is not {}", joulemap::quoted(text), allowed_values);
}

}  // namespace

CLI::Validator number_range_validator(double low, double high) {
  const std::string allowed_values = fmt::format("a number from {} to {}", low, high);
  return {[low, high, allowed_values](std::string& text) {
            const std::optional<double> value = parse_double(text);
            return value && *value >= low && *value <= high ? std::string()
                                                            : invalid_value_message(text, allowed_values);
          },
          fmt::format("{} to {}", low, high), ""};
}

CLI::Validator whole_number_validator(std::uint64_t low, std::uint64_t high) {
  const std::string allowed_values = fmt::format("a whole number from {} to {}", low, high);
  return {[low, high, allowed_values](std::string& text) {
            const std::optional<std::uint64_t> value = has_digits_only(text) ? parse_u64(text) : std::nullopt;
            return value && *value >= low && *value <= high ? std::string()
                                                            : invalid_value_message(text, allowed_values);
          },
          "", ""};
}

CLI::Validator word_choice_validator(const std::vector<std::string>& words) {
  const std::string allowed_values = fmt::format("one of {}", fmt::join(words, ", "));
  return {[words, allowed_values](std::string& text) {
            if (std::ranges::find(words, text) != words.end()) return std::string();
            const std::optional<std::string> nearest_match = nearest_word(text, words);
            return invalid_value_message(text, allowed_values) +
                   (nearest_match ? fmt::format("; did you mean {}?", *nearest_match) : "");
          },
          fmt::format("{{{}}}", fmt::join(words, ",")), ""};
}

void reject_empty_values(CLI::App& app) {
  const CLI::Validator not_empty_validator(
      [](std::string& text) { return text.empty() ? std::string("the value is empty") : std::string(); }, "", "");
  for (CLI::Option* const option : app.get_options()) {
    if (option->get_items_expected_max() > 0) option->check(not_empty_validator);
  }
  for (CLI::App* const verb : app.get_subcommands([](const CLI::App*) { return true; })) reject_empty_values(*verb);
}

}  // namespace joulemap::cli

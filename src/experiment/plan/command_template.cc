// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan/command_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "experiment/plan/shell_context.h"

namespace joulemap::experiment {
namespace {

constexpr std::array<std::string_view, 4> kReservedPlaceholders = {"row", "block", "seed", "folder"};

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// The name in "{name}" at `position`; empty if there is no placeholder.
std::string_view placeholder_name_at(std::string_view text, std::size_t position) {
  std::size_t end = position + 1;
  while (end < text.size() && is_name_character(text[end])) ++end;
  const bool is_placeholder = end > position + 1 && end < text.size() && text[end] == '}';
  return is_placeholder ? text.substr(position + 1, end - position - 1) : std::string_view();
}

// Replaces each placeholder with placeholder_value(name, shell context at the placeholder).
std::string replace_placeholders(
    std::string_view text, const std::function<std::string(std::string_view, const ShellContext&)>& placeholder_value) {
  std::string out;
  ShellContext shell;
  for (std::size_t position = 0; position < text.size(); ++position) {
    const bool opens_placeholder = text[position] == '{' && (position == 0 || text[position - 1] != '$');
    if (opens_placeholder && position + 1 < text.size() && text[position + 1] == '{') {
      const std::string_view name = placeholder_name_at(text, position + 1);
      const std::size_t end = position + 1 + name.size() + 2;
      if (!name.empty() && end < text.size() && text[end] == '}') {
        out += fmt::format("{{{}}}", name);
        for (const char c : out.substr(out.size() - name.size() - 2)) shell.consume_character(c);
        position = end;
        continue;
      }
    }
    const std::string_view name = opens_placeholder ? placeholder_name_at(text, position) : std::string_view();
    if (name.empty()) {
      out += text[position];
      shell.consume_character(text[position]);
    } else {
      out += placeholder_value(name, shell);
      shell.consume_character('x');  // stands in for the quoted value: the next character does not begin a word
      position += name.size() + 1;
    }
  }
  return out;
}

std::string find_placeholder_value(std::string_view name, const PlaceholderValues& values) {
  for (const auto& [placeholder_name, value] : values) {
    if (placeholder_name == name) return value;
  }
  return fmt::format("{{{}}}", name);
}

std::string quote_for_shell(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Mixes the bits, so that the seeds of adjacent rows are uncorrelated.
std::uint64_t mix_row_seed(std::uint64_t value) { return mix_bits(value + kGoldenRatio64); }

}  // namespace

bool is_reserved_placeholder(std::string_view name) {
  return std::find(kReservedPlaceholders.begin(), kReservedPlaceholders.end(), name) != kReservedPlaceholders.end();
}

std::string_view reserved_placeholders() { return "row, block, seed, folder"; }

PlaceholderValues make_placeholder_values(std::span<const ExperimentFactor> factors,
                                          std::span<const std::size_t> levels, const RowContext& context) {
  PlaceholderValues values;
  for (std::size_t i = 0; i < factors.size() && i < levels.size(); ++i) {
    values.emplace_back(factors[i].name, factors[i].levels.at(levels[i]));
  }
  values.emplace_back("row", fmt::format("{}", context.row_number));
  values.emplace_back("block", fmt::format("{}", context.block_number));
  // Frameworks take 32-bit seeds, some of them signed.
  values.emplace_back("seed",
                      fmt::format("{}", mix_row_seed(context.row_seed ^ mix_row_seed(context.row_number)) >> 33));
  values.emplace_back("folder", context.attempt_folder);
  return values;
}

Status check_command_template(const CommandSpec& command, std::span<const ExperimentFactor> factors) {
  std::string problem;
  const bool is_shell_command = !command.shell_text.empty();
  const auto check_placeholder = [&](std::string_view name, const ShellContext& shell) {
    const bool is_known =
        is_reserved_placeholder(name) ||
        std::any_of(factors.begin(), factors.end(), [&](const auto& factor) { return factor.name == name; });
    if (!is_known) {
      problem = fmt::format("{{{0}}} is not a factor; write {{{{{0}}}}} for the literal text", name);
    } else if (is_shell_command && !shell.unsafe_insertion_reason().empty()) {
      problem = fmt::format("{{{}}} {}", name, shell.unsafe_insertion_reason());
    }
    return std::string();
  };
  if (is_shell_command) replace_placeholders(command.shell_text, check_placeholder);
  for (const std::string& word : command.arguments) replace_placeholders(word, check_placeholder);
  if (!problem.empty()) return Error{ErrorCode::usage, problem, ""};
  return Done{};
}

std::vector<std::string> find_unused_factors(const ExperimentSpec& spec) {
  std::set<std::string, std::less<>> used_names;
  const auto collect_names = [&](std::string_view text) {
    replace_placeholders(text, [&](std::string_view name, const ShellContext&) {
      used_names.emplace(name);
      return std::string();
    });
  };
  if (spec.command.shell_text.empty() && spec.command.arguments.empty()) return {};  // rows of another tool
  collect_names(spec.command.shell_text);
  for (const std::string& word : spec.command.arguments) collect_names(word);
  for (const auto& [name, value] : spec.environment) collect_names(value);
  std::vector<std::string> unused_factors;
  for (const ExperimentFactor& factor : spec.factors) {
    if (factor.levels.size() > 1 && !used_names.contains(factor.name)) unused_factors.push_back(factor.name);
  }
  return unused_factors;
}

std::string expand_placeholders(std::string_view text, const PlaceholderValues& values) {
  return replace_placeholders(
      text, [&](std::string_view name, const ShellContext&) { return find_placeholder_value(name, values); });
}

std::vector<std::string> expand_command(const CommandSpec& command, const PlaceholderValues& values) {
  if (!command.shell_text.empty()) {
    return {"sh", "-c", replace_placeholders(command.shell_text, [&](std::string_view name, const ShellContext&) {
              return quote_for_shell(find_placeholder_value(name, values));
            })};
  }
  std::vector<std::string> arguments;
  for (const std::string& word : command.arguments) arguments.push_back(expand_placeholders(word, values));
  return arguments;
}

}  // namespace joulemap::experiment

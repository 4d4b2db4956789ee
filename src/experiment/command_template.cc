// SPDX-License-Identifier: Apache-2.0
#include "experiment/command_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/text.h"

namespace joulemap::experiment {
namespace {

constexpr std::array<std::string_view, 4> kReserved = {"row", "block", "seed", "folder"};

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// "{name}" at `at`, or nothing.
std::string_view name_at(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && is_name_character(text[end])) ++end;
  const bool is_placeholder = end > at + 1 && end < text.size() && text[end] == '}';
  return is_placeholder ? text.substr(at + 1, end - at - 1) : std::string_view();
}

// Follows what a shell takes for quotes, as far as commands of one line use them.
class QuoteState {
 public:
  void see(char c) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\' && quote_ != '\'') {
      escaped_ = true;
    } else if (quote_ != 0) {
      if (c == quote_) quote_ = 0;
    } else if (c == '\'' || c == '"') {
      quote_ = c;
    }
  }
  bool within() const { return quote_ != 0; }

 private:
  char quote_ = 0;
  bool escaped_ = false;
};

// The text with each placeholder replaced by what `value_of(name, within quotes)` gives.
std::string replaced(std::string_view text, const std::function<std::string(std::string_view, bool)>& value_of) {
  std::string out;
  QuoteState quotes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool opens = text[at] == '{' && (at == 0 || text[at - 1] != '$');
    if (opens && at + 1 < text.size() && text[at + 1] == '{') {
      const std::string_view name = name_at(text, at + 1);
      const std::size_t end = at + 1 + name.size() + 2;
      if (!name.empty() && end < text.size() && text[end] == '}') {
        out += fmt::format("{{{}}}", name);
        at = end;
        continue;
      }
    }
    const std::string_view name = opens ? name_at(text, at) : std::string_view();
    if (name.empty()) {
      out += text[at];
      quotes.see(text[at]);
    } else {
      out += value_of(name, quotes.within());
      at += name.size() + 1;
    }
  }
  return out;
}

std::string value_named(std::string_view name, const PlaceholderValues& values) {
  for (const auto& [known, value] : values) {
    if (known == name) return value;
  }
  return fmt::format("{{{}}}", name);
}

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Mixes so that rows beside each other get seeds that have nothing in common (SplitMix64's last steps).
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

bool is_reserved_placeholder(std::string_view name) {
  return std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end();
}

std::string_view reserved_placeholders() { return "row, block, seed, folder"; }

PlaceholderValues placeholder_values(std::span<const ExperimentFactor> factors, std::span<const std::size_t> levels,
                                     const RowPlace& place) {
  PlaceholderValues values;
  for (std::size_t i = 0; i < factors.size() && i < levels.size(); ++i) {
    values.emplace_back(factors[i].name, factors[i].levels.at(levels[i]));
  }
  values.emplace_back("row", fmt::format("{}", place.row));
  values.emplace_back("block", fmt::format("{}", place.block));
  // Frameworks take seeds of 32 bits, some signed.
  values.emplace_back("seed", fmt::format("{}", mixed(place.seed ^ mixed(place.row)) >> 33));
  values.emplace_back("folder", place.folder);
  return values;
}

Status check_template(const CommandSpec& command, std::span<const ExperimentFactor> factors) {
  std::string problem;
  const bool is_shell = !command.shell.empty();
  const auto look = [&](std::string_view name, bool within_quotes) {
    const bool is_known = is_reserved_placeholder(name) ||
                          std::any_of(factors.begin(), factors.end(), [&](const auto& f) { return f.name == name; });
    if (!is_known) {
      problem = fmt::format("{{{0}}} names no factor; {{{{{0}}}}} stands for the text itself", name);
    } else if (is_shell && within_quotes) {
      problem = fmt::format("{{{}}} stands within quotes: leave them out, it is quoted by itself", name);
    }
    return std::string();
  };
  if (is_shell) replaced(command.shell, look);
  for (const std::string& word : command.words) replaced(word, look);
  if (!problem.empty()) return Error{ErrorCode::usage, problem, ""};
  return Done{};
}

std::string filled_text(std::string_view text, const PlaceholderValues& values) {
  return replaced(text, [&](std::string_view name, bool) { return value_named(name, values); });
}

std::vector<std::string> filled_command(const CommandSpec& command, const PlaceholderValues& values) {
  if (!command.shell.empty()) {
    return {"sh", "-c", replaced(command.shell, [&](std::string_view name, bool) {
              return shell_quoted(value_named(name, values));
            })};
  }
  std::vector<std::string> words;
  for (const std::string& word : command.words) words.push_back(filled_text(word, values));
  return words;
}

}  // namespace joulemap::experiment

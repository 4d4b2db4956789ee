// SPDX-License-Identifier: Apache-2.0
//
// Wraps toml++, which no other file includes.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_MAX_NESTED_VALUES 64
#include <fmt/format.h>
// unity: alone (cmake/unity_groups.py), because of these macros. toml++ 3.3 asserts on some damaged files and, without
// assertions, has undefined behaviour on them (found by tests/attack). Here its assertions throw, also in release
// builds.
#undef NDEBUG
namespace joulemap::formats {
struct TomlAssertion {};
[[noreturn]] void throw_toml_assertion();
}  // namespace joulemap::formats
#define TOML_ASSERT(condition) ((condition) ? void() : ::joulemap::formats::throw_toml_assertion())
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "formats/document.h"

namespace joulemap::formats {
namespace {

// Longest dotted key that is accepted. Nested tables are read and freed recursively, so their depth must be bounded.
// toml++ bounds the nesting of values (TOML_MAX_NESTED_VALUES) but before 3.4 not that of dotted keys. With both
// bounded, the depth is at most their product.
constexpr std::size_t kMaxNamesInDottedKey = 16;

DocumentValue to_document_value(const toml::node& node);

template <class T>
std::string format_toml_value(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

// toml++ sorts members by name; this restores the file order by the positions of the keys.
DocumentValue::Table to_document_members(const toml::table& table) {
  struct MemberWithPosition {
    toml::source_position source_position;
    DocumentMember member;
  };
  std::vector<MemberWithPosition> members_with_position;
  for (const auto& [key, node] : table) {
    DocumentMember member{std::string(key.str()), to_document_value(node)};
    member.value.line = key.source().begin.line;
    members_with_position.push_back({key.source().begin, std::move(member)});
  }
  std::stable_sort(
      members_with_position.begin(), members_with_position.end(),
      [](const MemberWithPosition& a, const MemberWithPosition& b) { return a.source_position < b.source_position; });
  DocumentValue::Table members;
  for (MemberWithPosition& positioned_member : members_with_position)
    members.push_back(std::move(positioned_member.member));
  return members;
}

DocumentValue to_document_value(const toml::node& node) {
  DocumentValue value;
  value.line = node.source().begin.line;
  if (const toml::table* const table = node.as_table()) {
    value.content = to_document_members(*table);
  } else if (const toml::array* const array = node.as_array()) {
    DocumentValue::Array elements;
    for (const toml::node& element : *array) elements.push_back(to_document_value(element));
    value.content = std::move(elements);
  } else if (const auto* const text = node.as_string()) {
    value.content = text->get();
  } else if (const auto* const integer_value = node.as_integer()) {
    value.content = integer_value->get();
  } else if (const auto* const float_value = node.as_floating_point()) {
    value.content = float_value->get();
  } else if (const auto* const truth = node.as_boolean()) {
    value.content = truth->get();
  } else if (const auto* const date = node.as_date()) {
    value.content = format_toml_value(date->get());
  } else if (const auto* const time = node.as_time()) {
    value.content = format_toml_value(time->get());
  } else if (const auto* const date_time = node.as_date_time()) {
    value.content = format_toml_value(date_time->get());
  }
  return value;
}

// Returns the end of a string that opens at `begin`: behind its closing quotes, or the end of the line if they are
// missing.
std::size_t find_toml_string_end(std::string_view toml, std::size_t begin) {
  const char quote = toml[begin];
  const std::string closing_quotes(toml.substr(begin, 3) == std::string(3, quote) ? 3 : 1, quote);
  for (std::size_t i = begin + closing_quotes.size(); i < toml.size(); ++i) {
    if (toml[i] == '\\' && quote == '"') {
      ++i;
    } else if (toml[i] == '\n' && closing_quotes.size() == 1) {
      return i;
    } else if (toml.substr(i, closing_quotes.size()) == closing_quotes) {
      // Up to two more quotes belong to the content of a triple-quoted string.
      std::size_t end = i + closing_quotes.size();
      while (closing_quotes.size() == 3 && end < toml.size() && toml[end] == quote && end < i + 5) ++end;
      return end;
    }
  }
  return toml.size();
}

// Line, from 1, of the first non-ASCII character outside of strings and comments, where TOML 1.0 allows none; nullopt
// if there is none. toml++ 3.3 tests whether it is whitespace, which for most characters up to U+0499 has undefined
// behaviour (found by fuzz_experiment).
std::optional<std::size_t> find_stray_non_ascii_line(std::string_view toml) {
  std::size_t line = 1;
  for (std::size_t i = toml.starts_with("\xEF\xBB\xBF") ? 3 : 0; i < toml.size();) {
    if (static_cast<unsigned char>(toml[i]) >= 0x80) return line;
    std::size_t next_position = i + 1;
    if (toml[i] == '#') next_position = std::min(toml.find('\n', i), toml.size());
    if (toml[i] == '"' || toml[i] == '\'') next_position = find_toml_string_end(toml, i);
    line += static_cast<std::size_t>(std::count(toml.begin() + static_cast<std::ptrdiff_t>(i),
                                                toml.begin() + static_cast<std::ptrdiff_t>(next_position), '\n'));
    i = next_position;
  }
  return std::nullopt;
}

// Number of names in the longest dotted key: counts dots outside of strings and comments, also those of numbers. 0
// without dots.
std::size_t max_dotted_key_length(std::string_view toml) {
  std::size_t max_name_count = 0;
  std::size_t names = 1;
  for (std::size_t i = 0; i < toml.size();) {
    std::size_t next_position = i + 1;
    if (toml[i] == '#') next_position = std::min(toml.find('\n', i), toml.size());
    if (toml[i] == '"' || toml[i] == '\'') next_position = find_toml_string_end(toml, i);
    if (toml[i] == '.') max_name_count = std::max(max_name_count, ++names);
    if (std::string_view("\n=[]{},#").find(toml[i]) != std::string_view::npos) names = 1;
    i = next_position;
  }
  return max_name_count;
}

}  // namespace

void throw_toml_assertion() { throw TomlAssertion(); }

Result<DocumentValue> read_toml(std::string_view text, std::string_view name) {
  if (const std::optional<std::size_t> line = find_stray_non_ascii_line(text)) {
    return Error{ErrorCode::malformed, fmt::format("{}:{}: non-ASCII character outside of quotes", name, *line),
                 "quote names with such characters"};
  }
  if (max_dotted_key_length(text) > kMaxNamesInDottedKey) {
    return Error{ErrorCode::malformed, fmt::format("{}: a key has more than {} parts", name, kMaxNamesInDottedKey),
                 "keys of experiments and profiles are shorter"};
  }
  toml::parse_result parsed_document;
  try {
    parsed_document = toml::parse(text);
  } catch (const TomlAssertion&) {
    return Error{ErrorCode::malformed, fmt::format("{}: not valid TOML", name), "the file must be TOML 1.0"};
  }
  if (!parsed_document) {
    const toml::parse_error& error = parsed_document.error();
    return Error{ErrorCode::malformed, fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()),
                 "the file must be TOML 1.0"};
  }
  return to_document_value(parsed_document.table());
}

}  // namespace joulemap::formats

// SPDX-License-Identifier: Apache-2.0
//
// The face of toml++, which no other file includes.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "formats/document.h"

namespace joulemap::formats {
namespace {

DocumentValue value_of(const toml::node& node);

template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

// toml++ sorts members by name; the order of the file is that of the keys.
DocumentValue::Table members_of(const toml::table& table) {
  struct Placed {
    toml::source_position at;
    DocumentMember member;
  };
  std::vector<Placed> placed;
  for (const auto& [key, node] : table) {
    DocumentMember member{std::string(key.str()), value_of(node)};
    member.value.line = key.source().begin.line;
    placed.push_back({key.source().begin, std::move(member)});
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.at < b.at; });
  DocumentValue::Table members;
  for (Placed& each : placed) members.push_back(std::move(each.member));
  return members;
}

DocumentValue value_of(const toml::node& node) {
  DocumentValue value;
  value.line = node.source().begin.line;
  if (const toml::table* const table = node.as_table()) {
    value.content = members_of(*table);
  } else if (const toml::array* const array = node.as_array()) {
    DocumentValue::Array elements;
    for (const toml::node& element : *array) elements.push_back(value_of(element));
    value.content = std::move(elements);
  } else if (const auto* const text = node.as_string()) {
    value.content = text->get();
  } else if (const auto* const whole = node.as_integer()) {
    value.content = whole->get();
  } else if (const auto* const real = node.as_floating_point()) {
    value.content = real->get();
  } else if (const auto* const truth = node.as_boolean()) {
    value.content = truth->get();
  } else if (const auto* const date = node.as_date()) {
    value.content = printed(date->get());
  } else if (const auto* const time = node.as_time()) {
    value.content = printed(time->get());
  } else if (const auto* const moment = node.as_date_time()) {
    value.content = printed(moment->get());
  }
  return value;
}

}  // namespace

Result<DocumentValue> read_toml(std::string_view text, std::string_view name) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Error{ErrorCode::malformed, fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()),
                 "the file is TOML, version 1.0"};
  }
  return value_of(parsed.table());
}

}  // namespace joulemap::formats

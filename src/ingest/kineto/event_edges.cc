// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/event_edges.h"

#include <algorithm>
#include <array>

#include "formats/byte_scan.h"

namespace joulemap::ingest::kineto {
namespace {

constexpr std::array<std::string_view, 11> kEventMemberNames = {"ph",  "name", "cat",  "pid", "tid", "ts",
                                                                "dur", "id",   "args", "s",   "bp"};

std::size_t skip_spaces(std::string_view text, std::size_t at) {
  while (at < text.size() && formats::is_json_space(text[at])) ++at;
  return at;
}

bool looks_like_event(std::string_view text, std::size_t brace_offset) {
  const std::size_t quote = skip_spaces(text, brace_offset + 1);
  if (quote >= text.size() || text[quote] != '"') return false;
  const std::string_view key = text.substr(quote + 1, 5);
  const std::size_t end = key.find('"');
  if (end == std::string_view::npos) return false;
  if (std::find(kEventMemberNames.begin(), kEventMemberNames.end(), key.substr(0, end)) == kEventMemberNames.end())
    return false;
  const std::size_t colon = skip_spaces(text, quote + 1 + end + 1);
  return colon < text.size() && text[colon] == ':';
}

// Moves `at` to the last non-blank byte before it; returns whether that byte is `expected`.
bool match_character_before(std::string_view text, std::size_t& at, char expected) {
  while (at > 0 && formats::is_json_space(text[at - 1])) --at;
  return at > 0 && text[--at] == expected;
}

bool follows_json_object(std::string_view text, std::size_t brace_offset) {
  return match_character_before(text, brace_offset, ',') && match_character_before(text, brace_offset, '}');
}

}  // namespace

std::size_t find_event_start(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find('{', from); at != std::string_view::npos; at = text.find('{', at + 1)) {
    if (looks_like_event(text, at)) return at;
  }
  return std::string_view::npos;
}

std::size_t find_event_start_after_event(std::string_view text, std::size_t from) {
  std::size_t at = find_event_start(text, from);
  while (at != std::string_view::npos && !follows_json_object(text, at)) at = find_event_start(text, at + 1);
  return at;
}

std::size_t find_last_event_start(std::string_view text) {
  for (std::size_t at = text.rfind('{'); at != std::string_view::npos && at > 0; at = text.rfind('{', at - 1)) {
    if (looks_like_event(text, at) && follows_json_object(text, at)) return at;
  }
  return std::string_view::npos;
}

std::size_t find_event_list_end(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find(']', from); at != std::string_view::npos; at = text.find(']', at + 1)) {
    std::size_t before = at;
    if (!match_character_before(text, before, '}')) continue;
    const std::size_t next = skip_spaces(text, at + 1);
    const bool ends = next >= text.size() || (text[next] == '}' && skip_spaces(text, next + 1) >= text.size());
    const std::size_t after_comma = skip_spaces(text, next + 1);
    const bool goes_on =
        next < text.size() && text[next] == ',' && after_comma < text.size() && text[after_comma] == '"';
    if (ends || goes_on) return at + 1;
  }
  return std::string_view::npos;
}

}  // namespace joulemap::ingest::kineto

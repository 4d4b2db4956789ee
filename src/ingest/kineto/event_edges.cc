// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/event_edges.h"

#include <algorithm>
#include <array>

#include "formats/byte_scan.h"

namespace joulemap::ingest::kineto {
namespace {

constexpr std::array<std::string_view, 11> kEventMemberNames = {"ph",  "name", "cat",  "pid", "tid", "ts",
                                                                "dur", "id",   "args", "s",   "bp"};

std::size_t skip_spaces(std::string_view text, std::size_t offset) {
  while (offset < text.size() && formats::is_json_space(text[offset])) ++offset;
  return offset;
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

// Moves `offset` to the last non-blank byte before it; returns whether that byte is `expected`.
bool match_character_before(std::string_view text, std::size_t& offset, char expected) {
  while (offset > 0 && formats::is_json_space(text[offset - 1])) --offset;
  return offset > 0 && text[--offset] == expected;
}

bool follows_json_object(std::string_view text, std::size_t brace_offset) {
  return match_character_before(text, brace_offset, ',') && match_character_before(text, brace_offset, '}');
}

}  // namespace

std::size_t find_event_start(std::string_view text, std::size_t search_begin) {
  for (std::size_t offset = text.find('{', search_begin); offset != std::string_view::npos;
       offset = text.find('{', offset + 1)) {
    if (looks_like_event(text, offset)) return offset;
  }
  return std::string_view::npos;
}

std::size_t find_event_start_after_event(std::string_view text, std::size_t search_begin) {
  std::size_t offset = find_event_start(text, search_begin);
  while (offset != std::string_view::npos && !follows_json_object(text, offset))
    offset = find_event_start(text, offset + 1);
  return offset;
}

std::size_t find_last_event_start(std::string_view text) {
  for (std::size_t offset = text.rfind('{'); offset != std::string_view::npos && offset > 0;
       offset = text.rfind('{', offset - 1)) {
    if (looks_like_event(text, offset) && follows_json_object(text, offset)) return offset;
  }
  return std::string_view::npos;
}

std::size_t find_event_list_end(std::string_view text, std::size_t search_begin) {
  for (std::size_t offset = text.find(']', search_begin); offset != std::string_view::npos;
       offset = text.find(']', offset + 1)) {
    std::size_t previous_offset = offset;
    if (!match_character_before(text, previous_offset, '}')) continue;
    const std::size_t next_offset = skip_spaces(text, offset + 1);
    const bool ends =
        next_offset >= text.size() || (text[next_offset] == '}' && skip_spaces(text, next_offset + 1) >= text.size());
    const std::size_t after_comma = skip_spaces(text, next_offset + 1);
    const bool has_next_member =
        next_offset < text.size() && text[next_offset] == ',' && after_comma < text.size() && text[after_comma] == '"';
    if (ends || has_next_member) return offset + 1;
  }
  return std::string_view::npos;
}

}  // namespace joulemap::ingest::kineto

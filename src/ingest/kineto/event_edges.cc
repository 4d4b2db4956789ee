// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/event_edges.h"

#include <algorithm>
#include <array>

#include "formats/byte_scan.h"

namespace joulemap::ingest::kineto {
namespace {

constexpr std::array<std::string_view, 11> kMembers = {"ph",  "name", "cat",  "pid", "tid", "ts",
                                                       "dur", "id",   "args", "s",   "bp"};

std::size_t past_space(std::string_view text, std::size_t at) {
  while (at < text.size() && formats::is_json_space(text[at])) ++at;
  return at;
}

bool looks_like_event(std::string_view text, std::size_t brace) {
  const std::size_t quote = past_space(text, brace + 1);
  if (quote >= text.size() || text[quote] != '"') return false;
  const std::string_view key = text.substr(quote + 1, 5);
  const std::size_t end = key.find('"');
  if (end == std::string_view::npos) return false;
  if (std::find(kMembers.begin(), kMembers.end(), key.substr(0, end)) == kMembers.end()) return false;
  const std::size_t colon = past_space(text, quote + 1 + end + 1);
  return colon < text.size() && text[colon] == ':';
}

// Moves `at` to the last non-blank byte before it; returns false if that byte is not `wanted`.
bool step_back(std::string_view text, std::size_t& at, char wanted) {
  while (at > 0 && formats::is_json_space(text[at - 1])) --at;
  return at > 0 && text[--at] == wanted;
}

bool follows_object(std::string_view text, std::size_t brace) {
  return step_back(text, brace, ',') && step_back(text, brace, '}');
}

}  // namespace

std::size_t find_event(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find('{', from); at != std::string_view::npos; at = text.find('{', at + 1)) {
    if (looks_like_event(text, at)) return at;
  }
  return std::string_view::npos;
}

std::size_t find_event_behind_another(std::string_view text, std::size_t from) {
  std::size_t at = find_event(text, from);
  while (at != std::string_view::npos && !follows_object(text, at)) at = find_event(text, at + 1);
  return at;
}

std::size_t find_last_event(std::string_view text) {
  for (std::size_t at = text.rfind('{'); at != std::string_view::npos && at > 0; at = text.rfind('{', at - 1)) {
    if (looks_like_event(text, at) && follows_object(text, at)) return at;
  }
  return std::string_view::npos;
}

std::size_t find_end_of_events(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find(']', from); at != std::string_view::npos; at = text.find(']', at + 1)) {
    std::size_t before = at;
    if (!step_back(text, before, '}')) continue;
    const std::size_t next = past_space(text, at + 1);
    const bool ends = next >= text.size() || (text[next] == '}' && past_space(text, next + 1) >= text.size());
    const std::size_t after_comma = past_space(text, next + 1);
    const bool goes_on =
        next < text.size() && text[next] == ',' && after_comma < text.size() && text[after_comma] == '"';
    if (ends || goes_on) return at + 1;
  }
  return std::string_view::npos;
}

}  // namespace joulemap::ingest::kineto

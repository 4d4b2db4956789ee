// SPDX-License-Identifier: Apache-2.0
#include "ingest/trace_sidecar.h"

#include <array>
#include <optional>

#include "base/text.h"

namespace joulemap::ingest {
namespace {

constexpr std::array<std::string_view, kScopeKindCount> kScopeKindNames = {"mode",     "phase",  "module", "op",
                                                                           "function", "region", "tensors"};

std::optional<ScopeKind> parse_scope_kind(std::string_view name) {
  for (std::size_t i = 0; i < kScopeKindNames.size(); ++i) {
    if (kScopeKindNames[i] == name) return static_cast<ScopeKind>(i);
  }
  return std::nullopt;
}

std::vector<std::string_view> split_at_separator(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

TraceSidecar parse_trace_sidecar(std::string_view text) {
  TraceSidecar note;
  for (const std::string_view line : split_at_separator(text, '\n')) {
    const std::vector<std::string_view> words = split_at_separator(line, '\t');
    if (words[0] == "coarse" && words.size() == 3) {
      if (const auto kind = parse_scope_kind(words[1])) note.coarse_scope.emplace_back(*kind, to_valid_utf8(words[2]));
    }
    if (words[0] == "scope" && words.size() == 4) {
      note.graph_names.scope_by_operation.insert_or_assign(
          std::string(words[1]), scopes::NameScope{to_valid_utf8(words[2]), to_valid_utf8(words[3])});
    }
    if (words[0] == "tensors" && words.size() == 3) {
      note.graph_names.tensors_by_operation.insert_or_assign(std::string(words[1]), to_valid_utf8(words[2]));
    }
    if (words[0] == "update" && words.size() == 3) {
      note.graph_names.variable_reader_by_update.insert_or_assign(std::string(words[1]), std::string(words[2]));
    }
    if (words[0] == "fused" && words.size() == 4) {
      note.graph_names.fused_operations.insert_or_assign(
          std::string(words[1]), FusedOperation{std::string(words[2]), to_valid_utf8(words[3])});
    }
  }
  return note;
}

}  // namespace joulemap::ingest

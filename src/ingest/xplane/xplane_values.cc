// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "ingest/xplane/xplane_reader.h"

namespace joulemap::ingest {
namespace {

struct StatNameSpelling {
  std::string_view text;
  XStatName name;
};
constexpr std::array kStatNameSpellings = {
    StatNameSpelling{"hlo_op", XStatName::hlo_op},
    StatNameSpelling{"hlo_module", XStatName::hlo_module},
    StatNameSpelling{"program_id", XStatName::program_id},
    StatNameSpelling{"tf_op", XStatName::tf_op},
    StatNameSpelling{"_p", XStatName::producer},
    StatNameSpelling{"_c", XStatName::consumer},
    StatNameSpelling{"step_num", XStatName::step_num},
    StatNameSpelling{"correlation_id", XStatName::correlation_id},
    StatNameSpelling{"context_id", XStatName::context_id},
    StatNameSpelling{"kernel_details", XStatName::kernel_details},
    StatNameSpelling{"memcpy_details", XStatName::memcpy_details},
    StatNameSpelling{"memset_details", XStatName::memset_details},
    StatNameSpelling{"Memset_details", XStatName::memset_details},
    StatNameSpelling{"cuda_graph_node_id", XStatName::graph_node_id},
    StatNameSpelling{"shape", XStatName::shape},
    StatNameSpelling{"tf_function_call", XStatName::tf_function_call},
    StatNameSpelling{"_r", XStatName::is_root},
    StatNameSpelling{"memalloc_details", XStatName::memory_details},
    StatNameSpelling{"MemFree_details", XStatName::memory_details},
    StatNameSpelling{"MemoryResidency_details", XStatName::memory_details},
};

}  // namespace

XStatName parse_xstat_name(std::string_view text) {
  for (const StatNameSpelling& stat : kStatNameSpellings) {
    if (stat.text == text) return stat.name;
  }
  return XStatName::other;
}

std::optional<std::int64_t> XStat::integer() const {
  if (const auto* const signed_value = std::get_if<std::int64_t>(&value)) return *signed_value;
  const auto* const unsigned_value = std::get_if<std::uint64_t>(&value);
  if (unsigned_value == nullptr || *unsigned_value > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(*unsigned_value);
}

std::string_view find_text_stat(std::span<const XStat> stats, std::string_view name) {
  const auto matching_stat = std::find_if(stats.begin(), stats.end(),
                                          [&](const XStat& candidate_stat) { return candidate_stat.name == name; });
  return matching_stat == stats.end() ? std::string_view() : matching_stat->text();
}

std::optional<std::int64_t> find_integer_stat(std::span<const XStat> stats, std::string_view name) {
  const auto matching_stat = std::find_if(stats.begin(), stats.end(),
                                          [&](const XStat& candidate_stat) { return candidate_stat.name == name; });
  return matching_stat == stats.end() ? std::nullopt : matching_stat->integer();
}

}  // namespace joulemap::ingest

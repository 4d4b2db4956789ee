// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "ingest/xplane/xplane_reader.h"

namespace joulemap::ingest {
namespace {

struct KnownStat {
  std::string_view text;
  XStatName name;
};
constexpr std::array kKnownStats = {
    KnownStat{"hlo_op", XStatName::hlo_op},
    KnownStat{"hlo_module", XStatName::hlo_module},
    KnownStat{"program_id", XStatName::program_id},
    KnownStat{"tf_op", XStatName::tf_op},
    KnownStat{"_p", XStatName::producer},
    KnownStat{"_c", XStatName::consumer},
    KnownStat{"step_num", XStatName::step_num},
    KnownStat{"correlation_id", XStatName::correlation_id},
    KnownStat{"context_id", XStatName::context_id},
    KnownStat{"kernel_details", XStatName::kernel_details},
    KnownStat{"memcpy_details", XStatName::memcpy_details},
    KnownStat{"memset_details", XStatName::memset_details},
    KnownStat{"Memset_details", XStatName::memset_details},
    KnownStat{"cuda_graph_node_id", XStatName::graph_node_id},
    KnownStat{"shape", XStatName::shape},
    KnownStat{"tf_function_call", XStatName::tf_function_call},
    KnownStat{"_r", XStatName::is_root},
    KnownStat{"memalloc_details", XStatName::memory_details},
    KnownStat{"MemFree_details", XStatName::memory_details},
    KnownStat{"MemoryResidency_details", XStatName::memory_details},
};

}  // namespace

XStatName parse_xstat_name(std::string_view text) {
  for (const KnownStat& stat : kKnownStats) {
    if (stat.text == text) return stat.name;
  }
  return XStatName::other;
}

std::optional<std::int64_t> XStat::integer() const {
  if (const auto* const held = std::get_if<std::int64_t>(&value)) return *held;
  const auto* const held = std::get_if<std::uint64_t>(&value);
  if (held == nullptr || *held > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(*held);
}

std::string_view text_of(std::span<const XStat> stats, std::string_view name) {
  const auto found = std::find_if(stats.begin(), stats.end(), [&](const XStat& known) { return known.name == name; });
  return found == stats.end() ? std::string_view() : found->text();
}

std::optional<std::int64_t> integer_of(std::span<const XStat> stats, std::string_view name) {
  const auto found = std::find_if(stats.begin(), stats.end(), [&](const XStat& known) { return known.name == name; });
  return found == stats.end() ? std::nullopt : found->integer();
}

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "ingest/xplane/xplane_reader.h"

namespace joulemap::ingest {
namespace {

struct NamedStat {
  std::string_view text;
  XStatName name;
};
constexpr std::array kNamedStats = {
    NamedStat{"hlo_op", XStatName::hlo_op},
    NamedStat{"hlo_module", XStatName::hlo_module},
    NamedStat{"program_id", XStatName::program_id},
    NamedStat{"tf_op", XStatName::tf_op},
    NamedStat{"_p", XStatName::producer},
    NamedStat{"_c", XStatName::consumer},
    NamedStat{"step_num", XStatName::step_num},
    NamedStat{"correlation_id", XStatName::correlation_id},
    NamedStat{"context_id", XStatName::context_id},
    NamedStat{"kernel_details", XStatName::kernel_details},
    NamedStat{"memcpy_details", XStatName::memcpy_details},
    NamedStat{"memset_details", XStatName::memset_details},
    NamedStat{"Memset_details", XStatName::memset_details},
    NamedStat{"cuda_graph_node_id", XStatName::graph_node_id},
    NamedStat{"shape", XStatName::shape},
    NamedStat{"tf_function_call", XStatName::tf_function_call},
    NamedStat{"_r", XStatName::is_root},
    NamedStat{"memalloc_details", XStatName::memory_details},
    NamedStat{"MemFree_details", XStatName::memory_details},
    NamedStat{"MemoryResidency_details", XStatName::memory_details},
};

}  // namespace

XStatName parse_xstat_name(std::string_view text) {
  for (const NamedStat& stat : kNamedStats) {
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

std::string_view text_stat(std::span<const XStat> stats, std::string_view name) {
  const auto found = std::find_if(stats.begin(), stats.end(), [&](const XStat& known) { return known.name == name; });
  return found == stats.end() ? std::string_view() : found->text();
}

std::optional<std::int64_t> integer_stat(std::span<const XStat> stats, std::string_view name) {
  const auto found = std::find_if(stats.begin(), stats.end(), [&](const XStat& known) { return known.name == name; });
  return found == stats.end() ? std::nullopt : found->integer();
}

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// IdleCause: what an idle device waited for. The names are part of the public JSON, so they do not change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace joulemap {

enum class IdleCause : std::uint8_t {
  startup,
  data,
  launch,
  synchronization,
  compilation,
  evaluation,
  checkpoint,
  communication,
  host,
  between,
  shutdown,
  unknown,
};
inline constexpr std::array<std::string_view, 12> kIdleCauseNames = {
    "startup",    "data",          "launch", "synchronization", "compilation", "evaluation",
    "checkpoint", "communication", "host",   "between",         "shutdown",    "unknown"};
constexpr std::string_view to_string(IdleCause cause) { return kIdleCauseNames[static_cast<std::size_t>(cause)]; }

}  // namespace joulemap

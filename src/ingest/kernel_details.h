// SPDX-License-Identifier: Apache-2.0
//
// Parses how traces describe GPU work, and names it as the capture does. Missing or invalid values are 0. Pure
// functions. Texts of TensorFlow's profilers:
//
//   regs:24 static_shared:4224 dynamic_shared:0 grid:8,1,1 block:128,1,1 occ_pct:100
//   kind_src:pinned kind_dst:device size:4 dest:0 async:1
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace joulemap::ingest {

// Returns the number at the start of the text.
std::uint32_t parse_leading_number(std::string_view text);
// `what`: "grid", "block"
std::array<std::uint32_t, 3> parse_dimensions(std::string_view details, std::string_view what);
std::uint64_t parse_byte_count(std::string_view details);

// Kernel class names that the capture gives to unnamed GPU work.
inline constexpr std::string_view kFillClassName = "fill";
inline constexpr std::string_view kGraphClassName = "graph";
// CUpti_ActivityMemcpyKind: 1 is "HtoD".
std::string_view copy_direction(std::int64_t cupti_kind);
// "MemcpyH2D", "MEMCPYHtoD", "MemcpyHostToDevice" give "HtoD"; other texts give "unknown direction".
std::string_view parse_copy_direction(std::string_view text);

}  // namespace joulemap::ingest

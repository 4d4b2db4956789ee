// SPDX-License-Identifier: Apache-2.0
//
// Parses texts by which traces describe GPU work: launch geometry, bytes, copy direction. Gives copies, fills and
// graphs the class names that joulemap's capture uses. Missing or invalid values are 0. Pure functions. Texts of
// TensorFlow's profilers:
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
// Returns the three sizes of `dimension_name`, "grid" or "block".
std::array<std::uint32_t, 3> parse_launch_dimensions(std::string_view kernel_details, std::string_view dimension_name);
std::uint64_t parse_byte_count(std::string_view kernel_details);

// Kernel class names of memory fills and CUDA graphs, as in a capture.
inline constexpr std::string_view kFillClassName = "fill";
inline constexpr std::string_view kGraphClassName = "graph";
// Name of a CUpti_ActivityMemcpyKind: 1 gives "HtoD"; other numbers than CUPTI's give "unknown direction".
std::string_view copy_direction_name(std::int64_t cupti_kind);
// "MemcpyH2D", "MEMCPYHtoD", "MemcpyHostToDevice" give "HtoD"; other texts give "unknown direction".
std::string_view parse_copy_direction(std::string_view text);

}  // namespace joulemap::ingest

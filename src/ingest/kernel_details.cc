// SPDX-License-Identifier: Apache-2.0
#include "ingest/kernel_details.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "base/text.h"

namespace joulemap::ingest {
namespace {

constexpr std::array<std::string_view, 11> kCopyDirections = {
    "unknown direction", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};

struct CopyDirectionSpelling {
  std::string_view text;
  std::string_view direction;
};
constexpr std::array kCopyDirectionSpellings = {CopyDirectionSpelling{"HostToDevice", "HtoD"},
                                                CopyDirectionSpelling{"DeviceToHost", "DtoH"},
                                                CopyDirectionSpelling{"DeviceToDevice", "DtoD"},
                                                CopyDirectionSpelling{"HostToHost", "HtoH"},
                                                CopyDirectionSpelling{"PeerToPeer", "PtoP"},
                                                CopyDirectionSpelling{"H2D", "HtoD"},
                                                CopyDirectionSpelling{"D2H", "DtoH"},
                                                CopyDirectionSpelling{"D2D", "DtoD"},
                                                CopyDirectionSpelling{"H2H", "HtoH"},
                                                CopyDirectionSpelling{"P2P", "PtoP"}};

}  // namespace

std::string_view copy_direction_name(std::int64_t cupti_kind) {
  const bool is_known = cupti_kind > 0 && cupti_kind < static_cast<std::int64_t>(kCopyDirections.size());
  return kCopyDirections[is_known ? static_cast<std::size_t>(cupti_kind) : 0];
}

std::string_view parse_copy_direction(std::string_view text) {
  for (std::size_t i = 1; i < kCopyDirections.size(); ++i) {
    if (text.find(kCopyDirections[i]) != std::string_view::npos) return kCopyDirections[i];
  }
  for (const CopyDirectionSpelling& spelling : kCopyDirectionSpellings) {
    if (text.find(spelling.text) != std::string_view::npos) return spelling.direction;
  }
  return kCopyDirections[0];
}

std::uint32_t parse_leading_number(std::string_view text) {
  std::uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Reads "... grid:8,1,1 block:128,1,1 ..." and, of older versions, "... grid_x:8 grid_y:1 ...".
std::array<std::uint32_t, 3> parse_launch_dimensions(std::string_view kernel_details, std::string_view dimension_name) {
  std::array<std::uint32_t, 3> size{};
  const std::size_t name_position = kernel_details.find(dimension_name);
  if (name_position == std::string_view::npos) return size;
  std::string_view dimension_text = kernel_details.substr(name_position + dimension_name.size());
  if (dimension_text.starts_with(':') || dimension_text.starts_with('=')) {
    const std::vector<std::string_view> parts = split(dimension_text.substr(1, dimension_text.find(' ') - 1), ',');
    for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 3); ++i) size[i] = parse_leading_number(parts[i]);
    return size;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string key = fmt::format("{}_{:c}:", dimension_name, "xyz"[i]);
    if (const std::size_t axis = kernel_details.find(key); axis != std::string_view::npos) {
      size[i] = parse_leading_number(kernel_details.substr(axis + key.size()));
    }
  }
  return size;
}

std::uint64_t parse_byte_count(std::string_view kernel_details) {
  for (const std::string_view key : {"num_bytes:", "size:", "bytes:", "num_bytes="}) {
    const std::size_t key_position = kernel_details.find(key);
    if (key_position == std::string_view::npos) continue;
    std::uint64_t bytes = 0;
    const std::string_view byte_count_text = kernel_details.substr(key_position + key.size());
    std::from_chars(byte_count_text.data(), byte_count_text.data() + byte_count_text.size(), bytes);
    return bytes;
  }
  return 0;
}

}  // namespace joulemap::ingest

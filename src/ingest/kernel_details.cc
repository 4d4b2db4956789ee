// SPDX-License-Identifier: Apache-2.0
#include "ingest/kernel_details.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "base/text.h"

namespace joulemap::ingest {

std::uint32_t number_at(std::string_view text) {
  std::uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// "... grid:8,1,1 block:128,1,1 ..." and, from older versions, "... grid_x:8 grid_y:1 ...".
std::array<std::uint32_t, 3> size_in(std::string_view details, std::string_view what) {
  std::array<std::uint32_t, 3> size{};
  const std::size_t at = details.find(what);
  if (at == std::string_view::npos) return size;
  std::string_view rest = details.substr(at + what.size());
  if (rest.starts_with(':') || rest.starts_with('=')) {
    const std::vector<std::string_view> parts = split(rest.substr(1, rest.find(' ') - 1), ',');
    for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 3); ++i) size[i] = number_at(parts[i]);
    return size;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string key = fmt::format("{}_{:c}:", what, "xyz"[i]);
    if (const std::size_t axis = details.find(key); axis != std::string_view::npos) {
      size[i] = number_at(details.substr(axis + key.size()));
    }
  }
  return size;
}

std::uint64_t bytes_in(std::string_view details) {
  for (const std::string_view key : {"num_bytes:", "size:", "bytes:", "num_bytes="}) {
    const std::size_t at = details.find(key);
    if (at == std::string_view::npos) continue;
    std::uint64_t bytes = 0;
    const std::string_view rest = details.substr(at + key.size());
    std::from_chars(rest.data(), rest.data() + rest.size(), bytes);
    return bytes;
  }
  return 0;
}

}  // namespace joulemap::ingest

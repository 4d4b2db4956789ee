// SPDX-License-Identifier: Apache-2.0
//
// SystemRoot: the root of /sys and /proc. "/" on a real machine; a folder for a fake one (tests, `--sysroot`).
#pragma once

#include <string>
#include <string_view>

namespace joulemap {

struct SystemRoot {
  std::string prefix;  // empty for the real machine
  bool operator==(const SystemRoot&) const = default;

  bool is_this_machine() const { return prefix.empty(); }
  std::string path(std::string_view absolute_path) const { return prefix + std::string(absolute_path); }
};

}  // namespace joulemap

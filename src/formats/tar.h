// SPDX-License-Identifier: Apache-2.0
//
// Tar archives (POSIX ustar) of regular files, in one canonical form: mode 0644, owner 0, time 0, names of plain
// characters, two zero blocks at the end. `tar xf` reads them. read_tar() accepts this form only, so every byte of an
// archive is checked: links, devices, absolute names, "..", duplicates, sizes beyond the end and trailing bytes are
// errors. No content makes it crash, or allocate more than the list of members. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace joulemap::formats {

// read_tar() refuses archives with more.
inline constexpr std::size_t kMaxTarMembers = 1000;

struct TarMember {
  std::string name;
  std::string_view content;  // borrowed from the caller, or from the archive
};

// Whether a member may have this name: at most 100 letters, digits, '.', '-', '_' and '/'; relative, and without empty
// components, "." and "..".
bool is_tar_name(std::string_view name);

// Names must be distinct and is_tar_name(); contents are below 8 GiB. At most kMaxTarMembers.
std::string write_tar(std::span<const TarMember> members);

// The members refer to `archive`, which must outlive them.
Result<std::vector<TarMember>> read_tar(std::string_view archive);

}  // namespace joulemap::formats

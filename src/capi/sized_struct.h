// SPDX-License-Identifier: Apache-2.0
//
// Structures that cross the C interface begin with their size, set by the caller, and grow at the end only. A program
// and a library of different versions thus share the members that both define; others are zero. The same rule as
// copy_struct_from_user of Linux. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/result.h"

namespace joulemap::capi {

// No version has a larger structure: a larger size means that the caller did not set the member.
inline constexpr std::size_t kLargestStruct_bytes = 4096;

// Copies the caller's structure of `theirs_bytes` into ours of `ours_bytes`, and zeroes the rest of ours.
// `first_bytes`: the size of the first version. Fails with `usage` for a smaller size, and if the caller has set a
// member that this version does not define. Reads nothing beyond `theirs_bytes`.
Status copy_in(const void* theirs, std::size_t theirs_bytes, void* ours, std::size_t ours_bytes,
               std::size_t first_bytes, std::string_view name);

// Converts a caller's structure to ours.
template <class T>
Result<T> taken_in(const T& theirs, std::size_t first_bytes, std::string_view name) {
  T ours{};
  std::size_t size = 0;
  std::memcpy(&size, &theirs, sizeof size);
  if (Status copied = copy_in(&theirs, size, &ours, sizeof ours, first_bytes, name); !copied) {
    return std::move(copied).error();
  }
  ours.size = sizeof ours;
  return ours;
}

// Copies as much of ours as the caller's version has, and sets its size to that. Fails with `usage` if the caller has
// not set the size.
template <class T>
Status hand_out(T ours, T* theirs) {
  std::size_t size = 0;
  std::memcpy(&size, theirs, sizeof size);
  if (size < sizeof size || size > kLargestStruct_bytes) {
    return Error{ErrorCode::usage, "set the member `size` to sizeof of the structure", ""};
  }
  ours.size = std::min(size, sizeof ours);
  std::memcpy(theirs, &ours, ours.size);
  return Done{};
}

}  // namespace joulemap::capi

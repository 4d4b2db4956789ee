// SPDX-License-Identifier: Apache-2.0
//
// Structures that cross the C interface begin with their size, set by the caller, and grow at the end only. So a program
// and a library of different versions understand each other as far as both know a structure; what one of them does not know
// is zero. The rule is that of Linux' copy_struct_from_user. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/result.h"

namespace joulemap::capi {

// A larger size is no structure of any version: the member was not set.
inline constexpr std::size_t kLargestStruct_bytes = 4096;

// Copies what a caller's structure of `theirs_bytes` holds into ours of `ours_bytes`, and zeroes the rest of ours.
// `first_bytes`: the size of the first version. usage for a size below it, and where the caller has set a member that we do
// not know. Reads nothing beyond `theirs_bytes`.
Status copy_in(const void* theirs, std::size_t theirs_bytes, void* ours, std::size_t ours_bytes,
               std::size_t first_bytes, std::string_view name);

// A caller's structure as ours.
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

// As much of ours as the caller's version has, never more; its size then says how much that is. usage when the caller has
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

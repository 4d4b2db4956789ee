// SPDX-License-Identifier: Apache-2.0
//
// Structures that cross the C interface begin with their size, set by the caller, and grow at the end only. A program
// and a library of different versions thus share the members that both define; all other members are zero. Linux has
// the same rule (copy_struct_from_user). Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/result.h"

namespace joulemap::capi {

// No version has a larger structure: a larger size means that the caller did not set the member `size`.
inline constexpr std::size_t kMaxCallerStruct_bytes = 4096;

// Copies the caller's structure of `caller_bytes` into ours of `own_struct_bytes`, and zeroes the rest of ours.
// `first_version_bytes`: the size of the first version. Fails with `usage` for a smaller size, and if the caller has
// set a member that this version does not define. Reads nothing beyond `caller_bytes`.
Status copy_struct_from_caller(const void* caller_struct, std::size_t caller_bytes, void* own_struct,
                               std::size_t own_struct_bytes, std::size_t first_version_bytes, std::string_view name);

// Returns the caller's structure in the layout of this version; fails as copy_struct_from_caller does.
template <class T>
Result<T> copy_from_caller(const T& caller_struct, std::size_t first_version_bytes, std::string_view name) {
  T own_struct{};
  std::size_t size = 0;
  std::memcpy(&size, &caller_struct, sizeof size);
  if (Status copy_status =
          copy_struct_from_caller(&caller_struct, size, &own_struct, sizeof own_struct, first_version_bytes, name);
      !copy_status) {
    return std::move(copy_status).error();
  }
  own_struct.size = sizeof own_struct;
  return own_struct;
}

// Copies the members that the caller's version has, and sets the caller's `size` to the number of bytes copied. Fails
// with `usage` if the caller has not set `size`.
template <class T>
Status copy_to_caller(T own_struct, T* caller_struct) {
  std::size_t size = 0;
  std::memcpy(&size, caller_struct, sizeof size);
  if (size < sizeof size || size > kMaxCallerStruct_bytes) {
    return Error{ErrorCode::usage, "set the member `size` to sizeof of the structure", ""};
  }
  own_struct.size = std::min(size, sizeof own_struct);
  std::memcpy(caller_struct, &own_struct, own_struct.size);
  return Done{};
}

}  // namespace joulemap::capi

// SPDX-License-Identifier: Apache-2.0
#include "capi/sized_struct.h"

#include <fmt/format.h>

namespace joulemap::capi {

Status copy_struct_from_caller(const void* caller_struct, std::size_t caller_bytes, void* own_struct,
                               std::size_t own_struct_bytes, std::size_t first_version_bytes, std::string_view name) {
  if (caller_bytes < first_version_bytes || caller_bytes > kMaxCallerStruct_bytes) {
    return Error{ErrorCode::usage,
                 fmt::format("set the member `size` of {0} to sizeof({0}); it is {1}", name, caller_bytes), ""};
  }
  const std::size_t common_bytes = std::min(caller_bytes, own_struct_bytes);
  const auto* const bytes = static_cast<const std::byte*>(caller_struct);
  const bool has_unknown_members_set =
      std::any_of(bytes + common_bytes, bytes + caller_bytes, [](std::byte byte) { return byte != std::byte{0}; });
  if (has_unknown_members_set) {
    return Error{ErrorCode::usage,
                 fmt::format("{} sets a member that libjoulemap.so {} does not support", name, JOULEMAP_VERSION),
                 "leave it zero, or install the version that the program was compiled for"};
  }
  std::memset(own_struct, 0, own_struct_bytes);
  std::memcpy(own_struct, caller_struct, common_bytes);
  return Done{};
}

}  // namespace joulemap::capi

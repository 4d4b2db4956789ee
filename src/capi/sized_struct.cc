// SPDX-License-Identifier: Apache-2.0
#include "capi/sized_struct.h"

#include <fmt/format.h>

namespace joulemap::capi {

Status copy_in(const void* theirs, std::size_t theirs_bytes, void* ours, std::size_t ours_bytes,
               std::size_t first_bytes, std::string_view name) {
  if (theirs_bytes < first_bytes || theirs_bytes > kLargestStruct_bytes) {
    return Error{ErrorCode::usage,
                 fmt::format("set the member `size` of {0} to sizeof({0}); it is {1}", name, theirs_bytes), ""};
  }
  const std::size_t known = std::min(theirs_bytes, ours_bytes);
  const auto* const bytes = static_cast<const std::byte*>(theirs);
  const bool sets_unknown =
      std::any_of(bytes + known, bytes + theirs_bytes, [](std::byte byte) { return byte != std::byte{0}; });
  if (sets_unknown) {
    return Error{ErrorCode::usage,
                 fmt::format("{} sets a member that libjoulemap.so {} does not know", name, JOULEMAP_VERSION),
                 "leave it zero, or install the version that the program was compiled for"};
  }
  std::memset(ours, 0, ours_bytes);
  std::memcpy(ours, theirs, known);
  return Done{};
}

}  // namespace joulemap::capi

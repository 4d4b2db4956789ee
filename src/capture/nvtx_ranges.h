// SPDX-License-Identifier: Apache-2.0
//
// Turns NVTX ranges of the program into nested scopes of the calling thread: regions, or for ranges of XLA the scope of
// the operation. Does nothing when the process is not recorded.
#pragma once

#include <string_view>

namespace joulemap::capture {

void nvtx_push(std::string_view name) noexcept;
void nvtx_pop() noexcept;

}  // namespace joulemap::capture

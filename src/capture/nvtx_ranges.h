// SPDX-License-Identifier: Apache-2.0
//
// Turns NVTX ranges of the program into nested scopes of the calling thread.
#pragma once

#include <string_view>

namespace joulemap::capture {

void nvtx_push(std::string_view name) noexcept;
void nvtx_pop() noexcept;

}  // namespace joulemap::capture

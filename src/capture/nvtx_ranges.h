// SPDX-License-Identifier: Apache-2.0
//
// What the program says through NVTX, NVIDIA's own interface for naming ranges: regions of the calling thread that nest.
#pragma once

#include <string_view>

namespace joulemap::capture {

void nvtx_push(std::string_view name) noexcept;
void nvtx_pop() noexcept;

}  // namespace joulemap::capture

// SPDX-License-Identifier: Apache-2.0
//
// Powers of classes of kernels as payloads of chunks, and back: what a recording keeps of the kernel library, and the
// library itself (docs/recording-format.md). Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/kernel_power.h"

namespace joulemap::recording {

// As many payloads as there are chunks needed; none for nothing.
std::vector<std::string> encode_powers(std::span<const KernelPower> powers);

// Nothing when the payload makes no sense. Powers that cannot be, and kinds that we do not know, are left out.
std::optional<std::vector<KernelPower>> decode_powers(std::string_view payload);

}  // namespace joulemap::recording

// SPDX-License-Identifier: Apache-2.0
//
// Encodes powers of kernel classes as chunk payloads and decodes them: for the copy of the kernel library in a
// recording, and for the library itself (docs/reference/recording-format.md). Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/kernel_power.h"

namespace joulemap::recording {

// One payload per chunk; none for empty input.
std::vector<std::string> encode_power_payloads(std::span<const KernelPower> powers);

// Returns nullopt if the payload is invalid. Skips impossible powers and unknown kinds.
std::optional<std::vector<KernelPower>> decode_power_payload(std::string_view payload);

}  // namespace joulemap::recording

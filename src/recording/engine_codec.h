// SPDX-License-Identifier: Apache-2.0
//
// Encodes steps of a serving engine as chunk payloads and decodes them (docs/reference/recording-format.md). Context
// lengths and numbers of requests are stored as differences from their expected values, which are mostly equal. Pure;
// any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/engine_step.h"

namespace joulemap::recording {

// One payload per chunk; none for empty input.
std::vector<std::string> encode_engine_steps(const EngineSteps& steps);

// Returns nullopt if the payload is invalid.
std::optional<EngineSteps> decode_engine_steps(std::string_view payload);

}  // namespace joulemap::recording

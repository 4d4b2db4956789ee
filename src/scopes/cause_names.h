// SPDX-License-Identifier: Apache-2.0
//
// Classifies a function, operation or kernel by its name: does it compute, move memory, launch work, or wait? The rules
// match names that CUDA, cuDNN, PyTorch, TensorFlow and JAX use. Pure functions; seconds.
#pragma once

#include <optional>
#include <string_view>

#include "model/cause_class.h"

namespace joulemap::scopes {

// Returns nothing when the name matches no rule.
std::optional<EnergyCauseClass> cause_class_from_name(std::string_view name);
// Assigns all of `time_s` to the class that the name suggests, or to compute when the name matches no rule.
EnergyCause make_cause_from_name(std::string_view name, double time_s);

// Inverse of to_string(EnergyCauseClass). Returns nothing for any other text.
std::optional<EnergyCauseClass> parse_cause_class(std::string_view text);

}  // namespace joulemap::scopes

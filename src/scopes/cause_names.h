// SPDX-License-Identifier: Apache-2.0
//
// The cause that the name of a function, operation or kernel suggests, by the names that CUDA, cuDNN, PyTorch,
// TensorFlow and JAX use. Pure functions; seconds.
#pragma once

#include <optional>
#include <string_view>

#include "model/cause_class.h"

namespace joulemap::scopes {

// Returns nothing when the name matches no rule.
std::optional<EnergyCauseClass> cause_class_from_name(std::string_view name);
// Assigns all of the time to the class of the name, or to compute when the name matches no rule.
EnergyCause cause_from_name(std::string_view name, double time_s);

// Inverse of to_string(EnergyCauseClass).
std::optional<EnergyCauseClass> parse_cause_class(std::string_view text);

}  // namespace joulemap::scopes

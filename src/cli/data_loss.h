// SPDX-License-Identifier: Apache-2.0
//
// Classifies diagnostics that mean lost or damaged data, so that a number covers less than what happened. --strict
// turns them into an exit code. Notes about the method behind a number are not data loss. Pure functions.
#pragma once

#include <string_view>

#include "model/diagnostics.h"

namespace joulemap::cli {

bool is_data_loss(std::string_view code);
bool has_data_loss(const Diagnostics& diagnostics);

}  // namespace joulemap::cli

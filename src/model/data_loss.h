// SPDX-License-Identifier: Apache-2.0
//
// Finds diagnostics that mean lost or damaged data, so that an energy or a count is too low. With --strict, joulemap
// then exits with kExitDataLost. Notes about the method behind a number are not data loss. Pure functions.
#pragma once

#include <string_view>

#include "model/diagnostics.h"

namespace joulemap {

bool is_data_loss(std::string_view code);
bool has_data_loss(const Diagnostics& diagnostics);

}  // namespace joulemap

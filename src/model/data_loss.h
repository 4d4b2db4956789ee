// SPDX-License-Identifier: Apache-2.0
//
// Which diagnostics mean that data were lost or damaged, so that a number covers less than what happened: what --strict
// turns into an exit code. Notes about how a number was made are not among them. Pure.
#pragma once

#include <string_view>

#include "model/diagnostics.h"

namespace joulemap {

bool is_data_loss(std::string_view code);
bool has_data_loss(const Diagnostics& diagnostics);

}  // namespace joulemap

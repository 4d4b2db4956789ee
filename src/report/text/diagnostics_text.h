// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics and remedies as every text report shows them.
#pragma once

#include <string>
#include <string_view>

#include "model/diagnostics.h"

namespace joulemap::report {

// One paragraph each, indented by a blank; empty when there are none.
std::string diagnostics_text(const Diagnostics& diagnostics);

// The steps of a remedy, "-> " before each. A step that is a command to paste stands on a line of its own, however
// long: a line end inside would break it.
std::string remedy_text(std::string_view indent, std::string_view remedy);

}  // namespace joulemap::report

// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics and remedies, in the form of all text reports.
#pragma once

#include <string>
#include <string_view>

#include "model/diagnostics.h"

namespace joulemap::report {

// One paragraph each, indented by one space; empty if there are none.
std::string diagnostics_text(const Diagnostics& diagnostics);

// The steps of a remedy, each after "-> ". A command to paste gets its own unwrapped line, because a line break would
// break it.
std::string remedy_text(std::string_view indent, std::string_view remedy);

}  // namespace joulemap::report

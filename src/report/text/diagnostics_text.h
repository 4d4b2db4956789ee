// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics and remedies as text, for all text reports.
#pragma once

#include <string>
#include <string_view>

#include "model/diagnostics.h"

namespace joulemap::report {

// One wrapped paragraph per diagnostic; empty if there are none.
std::string diagnostics_text(const Diagnostics& diagnostics);

// The lines of a remedy, each after "-> ". A line that begins with "sudo " is a command to copy and is not wrapped;
// other lines are.
std::string remedy_text(std::string_view indent, std::string_view remedy);

}  // namespace joulemap::report

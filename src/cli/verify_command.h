// SPDX-License-Identifier: Apache-2.0
//
// joulemap verify BUNDLE [--json]
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_verify_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

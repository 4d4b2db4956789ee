// SPDX-License-Identifier: Apache-2.0
//
// joulemap diff A B [--by LEVEL] [--per UNIT] [--fail-over 5%] [--json] [-o FILE]
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_diff_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

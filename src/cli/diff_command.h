// SPDX-License-Identifier: Apache-2.0
//
// joulemap diff A B [--by LEVEL] [--per UNIT] [--fail-over 5%] [--whole-run] [--run-sd 2%] [--json] [-o FILE]
// joulemap diff B1 B2 ... --baseline A1 A2 ...
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_diff_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

// SPDX-License-Identifier: Apache-2.0
//
// joulemap man DIR: writes man pages of all verbs to DIR/man1.
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_man_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

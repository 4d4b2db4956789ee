// SPDX-License-Identifier: Apache-2.0
//
// joulemap open [FILE] [-o PAGE.html] [--no-browser]
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_open_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

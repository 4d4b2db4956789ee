// SPDX-License-Identifier: Apache-2.0
//
// joulemap stat [-r N] [-I MS] [-a | -p PID] [-D MS] [--sensors LIST] [--json] [-o FILE] [--] CMD...
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_stat_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

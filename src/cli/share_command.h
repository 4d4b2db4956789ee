// SPDX-License-Identifier: Apache-2.0
//
// joulemap share RECORDING -o FILE [--json]
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_share_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

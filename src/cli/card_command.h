// SPDX-License-Identifier: Apache-2.0
//
// joulemap card NAME [--device D] [--json] [-o FILE]
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_card_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

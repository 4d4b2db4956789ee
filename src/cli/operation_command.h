// SPDX-License-Identifier: Apache-2.0
//
// joulemap operation NAME [--device D] [--json] [-o FILE]
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_operation_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

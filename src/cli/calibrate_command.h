// SPDX-License-Identifier: Apache-2.0
//
// joulemap calibrate [--seconds S] [--sensors LIST] [--json] [-o FILE]
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_calibrate_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

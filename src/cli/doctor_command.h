// SPDX-License-Identifier: Apache-2.0
//
// joulemap doctor [--json] [-o FILE] [--sensors LIST]
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_doctor_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

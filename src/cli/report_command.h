// SPDX-License-Identifier: Apache-2.0
//
// joulemap report [FILE...] [--by LEVEL] [--json | --format F | --plot P | --html FILE | --cite | --disclose FORMAT] ...
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_report_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

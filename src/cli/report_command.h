// SPDX-License-Identifier: Apache-2.0
//
// joulemap report FILE... [--by domain] [--json] [-o FILE]
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_report_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

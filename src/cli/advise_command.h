// SPDX-License-Identifier: Apache-2.0
//
// joulemap advise [FILE...] [--json] [-o FILE]
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_advise_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

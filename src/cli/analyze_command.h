// SPDX-License-Identifier: Apache-2.0
//
// `joulemap experiment analyze EXPERIMENT`: what the rows of an experiment show, and what speaks against it.
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

// Declares the flags on `verb`, a subcommand of `experiment`.
void add_analyze_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

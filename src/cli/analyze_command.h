// SPDX-License-Identifier: Apache-2.0
//
// `joulemap experiment analyze EXPERIMENT`: tests the rows of an experiment and lists threats to validity.
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

// Declares options and action on `verb`, a subcommand of `experiment`.
void add_analyze_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

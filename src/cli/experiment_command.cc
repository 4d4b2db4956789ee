// SPDX-License-Identifier: Apache-2.0
#include "cli/experiment_command.h"

#include "cli/analyze_command.h"

namespace joulemap::cli {

void add_experiment_command(CLI::App& verb, CommandLine& line) {
  verb.require_subcommand(1);
  add_analyze_command(*verb.add_subcommand("analyze", "what the rows show, and what speaks against it"), line);
}

}  // namespace joulemap::cli

// SPDX-License-Identifier: Apache-2.0
//
// joulemap experiment plan|run|resume|run-row|status|submit|analyze: designed experiments (docs/how-to/experiments.md).
// One add function per subcommand; to add a subcommand, declare its function here and add a line to
// experiment_command.cc.
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_experiment_command(CLI::App& verb, CommandLine& line);

void add_experiment_plan(CLI::App& verb, CommandLine& line);
void add_experiment_run(CLI::App& verb, CommandLine& line);
void add_experiment_resume(CLI::App& verb, CommandLine& line);
void add_experiment_run_row(CLI::App& verb, CommandLine& line);
void add_experiment_submit(CLI::App& verb, CommandLine& line);
void add_experiment_status(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

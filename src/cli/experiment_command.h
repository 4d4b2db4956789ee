// SPDX-License-Identifier: Apache-2.0
//
// joulemap experiment plan|run|resume|run-row|status|submit|analyze: designed experiments (docs/how-to/experiments.md).
// One add function per subcommand; to add a subcommand, declare its function here and add a line to
// experiment_command.cc.
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_experiment_command(CLI::App& verb, CommandLine& line);

void add_experiment_plan_command(CLI::App& verb, CommandLine& line);
void add_experiment_run_command(CLI::App& verb, CommandLine& line);
void add_experiment_resume_command(CLI::App& verb, CommandLine& line);
void add_experiment_run_row_command(CLI::App& verb, CommandLine& line);
void add_experiment_submit_command(CLI::App& verb, CommandLine& line);
void add_experiment_status_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

// SPDX-License-Identifier: Apache-2.0
//
// Shared by the subcommands of `experiment`: selects the folder, and sets the options for running rows in it.
#pragma once

#include <string>

#include "cli/command.h"
#include "experiment/run/experiment_folder.h"
#include "experiment/run/run_session.h"

namespace joulemap::cli {

// `plan` is the folder of an experiment, or a plan file: then creates a folder `folder`, by default named after the
// experiment in the working directory.
Result<experiment::ExperimentFolder> open_or_create_experiment(const std::string& plan, const std::string& folder);

experiment::RunnerOptions runner_options(const CommandLine& line);

}  // namespace joulemap::cli

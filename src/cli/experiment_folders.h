// SPDX-License-Identifier: Apache-2.0
//
// Functions shared by the subcommands of `experiment`.
#pragma once

#include <string>

#include "cli/command.h"
#include "experiment/run/experiment_folder.h"
#include "experiment/run/run_session.h"

namespace joulemap::cli {

// If `plan` is an experiment folder, opens it. If it is a plan file (experiment.toml), creates the experiment folder
// `folder`; if that is empty, a folder in the working directory named after the experiment.
Result<experiment::ExperimentFolder> open_or_create_experiment(const std::string& plan, const std::string& folder);

// Options for running rows.
experiment::RunnerOptions make_runner_options(const CommandLine& line);

}  // namespace joulemap::cli

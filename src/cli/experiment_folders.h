// SPDX-License-Identifier: Apache-2.0
//
// What the verbs of `experiment` share: which folder is meant, and how rows are run in it.
#pragma once

#include <string>

#include "cli/command.h"
#include "experiment/run/experiment_folder.h"
#include "experiment/run/run_session.h"

namespace joulemap::cli {

// `plan` is the folder of an experiment, or a plan: then a folder is made of it, called `folder` or, when that is empty, as
// the experiment itself, here.
Result<experiment::ExperimentFolder> open_or_create(const std::string& plan, const std::string& folder);

experiment::RunnerOptions runner_options(const CommandLine& line);

}  // namespace joulemap::cli

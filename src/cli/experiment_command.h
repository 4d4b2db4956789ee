// SPDX-License-Identifier: Apache-2.0
//
// `joulemap experiment ...`: designed experiments.
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_experiment_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

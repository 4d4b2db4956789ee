// SPDX-License-Identifier: Apache-2.0
//
// joulemap model fit FOLDER... [--device D] -o PROFILE
// joulemap model eval FOLDER... [--folds N] [--held-out FOLDER] [--predictions FILE] [--json] [-o FILE]
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_model_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

// SPDX-License-Identifier: Apache-2.0
//
// joulemap model fit FOLDER... -o PROFILE, joulemap model eval FOLDER... [--predictions FILE] [--json]
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_model_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

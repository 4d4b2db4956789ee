// SPDX-License-Identifier: Apache-2.0
//
// joulemap predict MODEL [--device D] [--batch N] [--input SHAPE] [--pass inference|training] [--precision TYPE] ...
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_predict_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

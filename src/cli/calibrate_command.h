// SPDX-License-Identifier: Apache-2.0
//
// joulemap calibrate [--seconds S] [--no-load] [--sensors LIST] [--json] [-o FILE]: measures how sensors behave.
// joulemap calibrate --predict [--minutes N] [--python FILE] [-o FILE]: see calibrate_prediction.h.
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_calibrate_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

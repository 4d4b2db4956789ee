// SPDX-License-Identifier: Apache-2.0
//
// joulemap import: converts traces and power logs of other tools into a recording, or published measurements into an
// experiment (import_experiment.h).
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_import_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

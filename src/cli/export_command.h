// SPDX-License-Identifier: Apache-2.0
//
// `joulemap export`: a recording for the viewers that people already use.
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_export_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

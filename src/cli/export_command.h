// SPDX-License-Identifier: Apache-2.0
//
// `joulemap export`: converts a recording to the formats of other viewers.
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_export_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

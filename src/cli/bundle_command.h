// SPDX-License-Identifier: Apache-2.0
//
// joulemap bundle RECORDING... [-o FILE] [--mode M] [--time FROM,TO] [--exclude LIST] [--library FILE|none] [--json]
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_bundle_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

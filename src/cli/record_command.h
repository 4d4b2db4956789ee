// SPDX-License-Identifier: Apache-2.0
//
// joulemap record [-o FILE] [--period MS] [--trace auto|full|light|kernels|off] [--dither] [--probe] [--sensors LIST]
//                 [--json] [--] CMD..., or joulemap record -p PID ...
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_record_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

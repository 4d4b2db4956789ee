// SPDX-License-Identifier: Apache-2.0
//
// `joulemap bench serve`: declares its options and starts python/joulemap/_bench_serve, which is written in Python
// because it also runs engines in its process. Main thread.
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_bench_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

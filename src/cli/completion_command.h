// SPDX-License-Identifier: Apache-2.0
//
// joulemap completion bash|zsh|fish
#pragma once

#include "cli/command.h"

namespace joulemap::cli {

void add_completion_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli

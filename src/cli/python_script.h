// SPDX-License-Identifier: Apache-2.0
//
// Runs parts of joulemap that are written in Python: with the interpreter JOULEMAP_PYTHON, or python3 of PATH, and with
// the joulemap package that belongs to this executable. Main thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

namespace joulemap::cli {

// Replaces this process by `python3 -c SCRIPT ARGUMENTS...`, so that its signals and exit code are those of the script.
// Returns only if that fails.
Error exec_python_script(const CommandLine& line, std::string_view script, const std::vector<std::string>& arguments);

}  // namespace joulemap::cli

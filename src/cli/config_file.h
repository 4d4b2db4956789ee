// SPDX-License-Identifier: Apache-2.0
//
// joulemap.toml: defaults of options that do not change from run to run. A key is the name of an option. At the top
// level it applies to every verb that has the option; in a table such as [record], to that verb. Two files are read,
// and the second one wins: $XDG_CONFIG_HOME/joulemap/joulemap.toml (default ~/.config), and joulemap.toml in the
// working directory. JOULEMAP_CONFIG names one file to read instead of both; "none" reads no file. Main thread.
#pragma once

#include <CLI/CLI.hpp>

#include "base/result.h"

namespace joulemap::cli {

// Reads the files and sets the defaults of options in `app`. Fails on a key or value that no verb accepts.
Status apply_config_files(CLI::App& app);

}  // namespace joulemap::cli

// SPDX-License-Identifier: Apache-2.0
//
// joulemap.toml: defaults of options that do not change from run to run. A key is the name of an option; at the top it
// applies to every verb that has the option, in a table such as [record] to that verb. Read in this order, the later one
// wins: $XDG_CONFIG_HOME/joulemap/joulemap.toml (~/.config), joulemap.toml in the working directory. JOULEMAP_CONFIG
// names another file instead of both; "none" reads none. Main thread.
#pragma once

#include <CLI/CLI.hpp>

#include "base/result.h"

namespace joulemap::cli {

// Sets the defaults. Fails on a key or value that no verb accepts.
Status apply_config_files(CLI::App& app);

}  // namespace joulemap::cli

// SPDX-License-Identifier: Apache-2.0
//
// Finds words on the command line that no verb accepts. The parser collects such words, because all verbs inherit
// allow_extras; this is the one place that rejects them for every verb. Pure functions of a parsed CLI::App.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace joulemap::cli {

// The parsed verbs, such as "experiment analyze". Empty before any.
std::string verb_path(const CLI::App& app);

// Returns the first of these faults, with the nearest known name:
//   an unknown option, a word that is no verb, a surplus word,
//   words after "--" where the verb takes none, "--option=" without a value.
// Words of a wrapped command are not checked. `words` are the arguments up to "--".
std::optional<Error> find_usage_error(const CLI::App& app, const CommandLine& line,
                                      const std::vector<std::string>& words);

}  // namespace joulemap::cli

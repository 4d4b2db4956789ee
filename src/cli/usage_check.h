// SPDX-License-Identifier: Apache-2.0
//
// Finds words on the command line that no verb accepts. CLI11 collects such words without an error, because all verbs
// inherit allow_extras; find_usage_error() rejects them. Pure functions of a parsed CLI::App.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace joulemap::cli {

// The verbs of the command line, such as "experiment analyze"; empty if there is none.
std::string parsed_verb_name(const CLI::App& app);

// Returns the first of these errors, if any; the message suggests the nearest known name:
//   an unknown option, a word that is no verb, a surplus word,
//   words after "--" where the verb takes none, "--option=" without a value.
// Does not check the words of a command to run. `words`: the arguments up to "--".
std::optional<Error> find_usage_error(const CLI::App& app, const CommandLine& line,
                                      const std::vector<std::string>& words);

}  // namespace joulemap::cli

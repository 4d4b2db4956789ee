// SPDX-License-Identifier: Apache-2.0
//
// VerbDescription: a verb with its options, as plain data for shell completion and man pages. describe_verbs() reads it
// from the parser, which also prints --help. Pure.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace joulemap::cli {

struct OptionDescription {
  std::vector<std::string> names;    // "-o", "--output"; of a positional argument: "FILE"
  std::string value_placeholder;     // "FILE"; empty for a flag
  std::vector<std::string> choices;  // accepted values, if they are a list; else empty
  std::string help_text;
  bool is_argument = false;  // a positional argument
};

struct VerbDescription {
  std::vector<std::string> verb_words;  // "experiment", "run"; empty for joulemap itself
  std::string summary;
  std::vector<OptionDescription> options;
  std::vector<std::string> verbs;  // names of its subcommands
  std::string help_footer;
};

// joulemap itself first, then its verbs, each followed by its subcommands.
std::vector<VerbDescription> describe_verbs(const CLI::App& app);

}  // namespace joulemap::cli

// SPDX-License-Identifier: Apache-2.0
//
// VerbDescription: a verb with its options, as plain data. --help, shell completion and man pages come from the same
// declarations: describe_verbs() reads them from the parser. Pure.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace joulemap::cli {

struct OptionDescription {
  std::vector<std::string> names;    // "-o", "--output"; for an argument its name alone: "FILE"
  std::string value;                 // "FILE"; empty for a flag
  std::vector<std::string> choices;  // values it accepts, if there are only a few
  std::string help;
  bool is_argument = false;  // found by its position, without a name
};

struct VerbDescription {
  std::vector<std::string> path;  // "experiment", "run"; empty for the program itself
  std::string summary;
  std::vector<OptionDescription> options;
  std::vector<std::string> verbs;  // names of its own verbs
  std::string footer;
};

// The program first, then its verbs, each followed by its own.
std::vector<VerbDescription> describe_verbs(const CLI::App& app);

}  // namespace joulemap::cli

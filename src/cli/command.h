// SPDX-License-Identifier: Apache-2.0
//
// What a verb of the command line is: a name, a line of help, and a function that declares its flags and says
// what to do. A command parses, calls the library, chooses a report, and prints; nothing else.
//
// To add one: a file <verb>_command.cc with an add function, and a line in commands.cc.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/system_root.h"
#include "model/diagnostics.h"

namespace joulemap::cli {

// Exit codes of our own. Around a command its code is passed on, and these appear only before it has started.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;
inline constexpr int kDataLost = 3;  // with --strict alone; around a command, where the command itself succeeded
inline constexpr int kNotPossibleHere = 77;

// What all commands share: filled in while parsing, read when a command runs. Outlives the parser.
struct CommandLine {
  SystemRoot root;
  std::string replay;                          // a recording that stands in for the sensors
  std::string program;                         // path of this executable
  bool has_dashes = false;                     // there was a --
  std::vector<std::string> wrapped;            // what stood after it
  std::vector<const CLI::App*> takes_words;    // verbs that use `wrapped`; all others refuse a --
  std::vector<const CLI::App*> opens_sensors;  // all others give up borrowed rights before they begin
  int exit_code = kDone;
};

struct Command {
  std::string_view name;
  std::string_view summary;
  // Declares flags on `verb` and a callback that runs the command and sets line.exit_code.
  void (*add)(CLI::App& verb, CommandLine& line);
};

// All verbs, in the order of the help text.
std::span<const Command> commands();

// The one place that turns an error into an exit code: wrong usage 2, not possible here 77, a command that is not
// there 127 or cannot be executed 126, anything else 1.
int exit_code_of(ErrorCode code);

// --strict of the verbs that show numbers: `strict` outlives the parser.
void add_strict_flag(CLI::App& verb, bool& strict);
// `code`, or with --strict kDataLost where all went well but data were lost or damaged.
int strict_exit_code(int code, bool strict, const Diagnostics& diagnostics);

// Prints "joulemap: message" and the remedy to stderr; returns the exit code. "joulemap diff: message" where the verb
// does not follow from the message.
int fail(const Error& error, std::string_view verb = {});

}  // namespace joulemap::cli

// SPDX-License-Identifier: Apache-2.0
//
// Command: a verb of the command line: a name, a task, a line of help, an example, and a function that declares its
// options and its action. A command parses, calls the library, chooses a report, and prints; nothing else.
//
// To add one: a file <verb>_command.cc with an add function, and a line in commands.cc.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/system_root.h"
#include "cli/terminal.h"
#include "model/diagnostics.h"

namespace joulemap::cli {

// Exit codes of joulemap itself. A verb that runs a command returns the command's code; these then appear only before
// it starts.
inline constexpr int kExitSuccess = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsageError = 2;
inline constexpr int kExitDataLost = 3;  // with --strict only; if a command ran, only if it succeeded
inline constexpr int kExitUnsupported = 77;

// State shared by all commands: filled in while parsing, read when a command runs. Must outlive the parser.
struct CommandLine {
  SystemRoot root;
  Colour colour = Colour::automatic;
  bool quiet = false;                                  // errors and asked-for results only
  bool verbose = false;                                // also where numbers come from
  const CLI::App* app = nullptr;                       // the parser, for commands that describe it
  std::string replay;                                  // a recording that replaces the sensors
  std::string program;                                 // path of this executable
  bool has_double_dash = false;                        // the command line contains a --
  std::vector<std::string> wrapped_words;              // the words after it
  std::vector<const CLI::App*> verbs_taking_command;   // verbs that use `wrapped_words`; all others reject a --
  std::vector<const CLI::App*> verbs_opening_sensors;  // all others drop file capabilities first
  int exit_code = kExitSuccess;
};

enum class Task : std::uint8_t { measure, look, compare, predict, maintain };
inline constexpr std::array<Task, 5> kTasks = {Task::measure, Task::look, Task::compare, Task::predict, Task::maintain};

struct Command {
  std::string_view name;
  Task task;
  std::string_view summary;
  std::string_view example;  // without "joulemap "
  // Declares flags on `verb` and a callback that runs the command and sets line.exit_code.
  void (*add)(CLI::App& verb, CommandLine& line);
};

// A verb of a verb, such as "experiment run".
struct Subcommand {
  std::string_view name;
  std::string_view summary;
  void (*add)(CLI::App& verb, CommandLine& line);
};

// All verbs, in the order of the overview.
std::span<const Command> commands();

// The only function that maps an error to an exit code: wrong usage 2, not possible here 77, command not found 127 or
// not executable 126, anything else 1.
int exit_code_of(ErrorCode code);

// Declares --strict, for verbs that print numbers. `strict` must outlive the parser.
void add_strict_flag(CLI::App& verb, bool& strict);
// Returns `code`, or kExitDataLost if --strict is set, `code` is success and data were lost or damaged.
int strict_exit_code(int code, bool strict, const Diagnostics& diagnostics);

// Prints "joulemap: message" and the remedy to stderr; returns the exit code. With `verb`, for messages that do not
// identify it, prints "joulemap diff: message".
int print_error(const Error& error, std::string_view verb = {});

}  // namespace joulemap::cli

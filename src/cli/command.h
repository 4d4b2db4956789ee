// SPDX-License-Identifier: Apache-2.0
//
// Command: a verb of the command line, such as `record`: its name, task, help line and example, and a function that
// declares its options and its action. A command only parses options, calls the library, chooses a report, and prints.
//
// To add a command, write <verb>_command.cc with an add function, and add a line to commands.cc.
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

// Exit codes of joulemap. A verb that runs a command (record, stat) returns the exit code of that command; it returns
// one of these only if the command could not be started, or kExitDataLost.
inline constexpr int kExitSuccess = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsageError = 2;
inline constexpr int kExitDataLost = 3;      // only with --strict: data were lost or damaged, and all else succeeded
inline constexpr int kExitUnsupported = 77;  // not possible on this machine

// Options and state shared by all commands: set while parsing, read when a command runs. Must outlive the parser.
struct CommandLine {
  SystemRoot system_root;
  ColourMode colour = ColourMode::automatic;
  bool quiet = false;                                  // -q: print only errors and requested results
  bool is_verbose = false;                             // -v: print more details
  const CLI::App* cli_app = nullptr;                   // the parser, for commands that describe it
  std::string replay_option;                           // --replay: a recording that replaces the sensors
  std::string program_path;                            // path of the joulemap executable
  bool has_double_dash = false;                        // the command line contains a --
  std::vector<std::string> command_words;              // the words after the --
  std::vector<const CLI::App*> verbs_taking_command;   // verbs that use `command_words`; all others reject a --
  std::vector<const CLI::App*> verbs_replaying;        // verbs that use `replay_option`; all others reject it
  std::vector<const CLI::App*> verbs_opening_sensors;  // verbs that need file capabilities; all others drop them
  int exit_code = kExitSuccess;
};

enum class UserTask : std::uint8_t { measure, inspect, compare, predict, maintain };
inline constexpr std::array<UserTask, 5> kUserTasks = {UserTask::measure, UserTask::inspect, UserTask::compare,
                                                       UserTask::predict, UserTask::maintain};

struct Command {
  std::string_view name;
  UserTask user_task;
  std::string_view summary;
  std::string_view example;  // without "joulemap "
  // Declares flags on `verb` and a callback that runs the command and sets line.exit_code.
  void (*add_to_app)(CLI::App& verb, CommandLine& line);
};

// A subcommand of a verb, such as `run` of `experiment run`.
struct Subcommand {
  std::string_view name;
  std::string_view summary;
  void (*add)(CLI::App& verb, CommandLine& line);
};

// All verbs, in the order in which `joulemap --help` lists them.
std::span<const Command> commands();

// Maps an error to an exit code: wrong usage 2, not possible on this machine 77, command not found 127, command not
// executable 126, anything else 1.
int exit_code_of(ErrorCode code);

// Declares --strict, for verbs that print numbers. `is_strict` must outlive the parser.
void add_strict_flag(CLI::App& verb, bool& is_strict);
// Returns `code`, or kExitDataLost if --strict is set, `code` is success and data were lost or damaged.
int strict_exit_code(int code, bool is_strict, const Diagnostics& diagnostics);

// Prints "joulemap: message" and the remedy to stderr; returns exit_code_of() the error. With a verb, prints
// "joulemap diff: message".
int print_error(const Error& error, std::string_view verb = {});

}  // namespace joulemap::cli

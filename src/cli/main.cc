// SPDX-License-Identifier: Apache-2.0
//
// Entry point of joulemap: parses the command line, runs a verb, and returns its exit code.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/file_capabilities.h"
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/output.h"
#include "cli/overview.h"
#include "cli/terminal.h"
#include "cli/usage_check.h"
#include "cli/value_checks.h"

namespace joulemap::cli {
namespace {

std::string this_program_path() {
  std::array<char, PATH_MAX> path;
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

// The innermost parsed verb: "run" of "experiment run".
const CLI::App* innermost_verb(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  return verb;
}

// --sysroot without trailing slashes. "/" becomes "", which means the real machine.
std::string remove_trailing_slashes(std::string directory) {
  while (directory.ends_with('/')) directory.pop_back();
  return directory;
}

constexpr std::string_view kCommonOptionsGroup = "Common options";

void add_common_options(CLI::App& app, CommandLine& line) {
  app.add_option_function<std::string>(
         "--color",
         [&line](const std::string& word) {
           line.colour = word == "always"  ? ColourMode::always
                         : word == "never" ? ColourMode::never
                                           : ColourMode::automatic;
         },
         "auto (the default: on a terminal, unless NO_COLOR is set), always or never")
      ->type_name("WHEN")
      ->check(word_choice_validator({"auto", "always", "never"}))
      ->group(std::string(kCommonOptionsGroup));
  app.add_flag("-q,--quiet", line.quiet, "no notes, no progress, no summary of a recording")
      ->group(std::string(kCommonOptionsGroup));
  app.add_flag("-v,--verbose", line.is_verbose, "more details")->group(std::string(kCommonOptionsGroup));
}

void add_sysroot_option(CLI::App& app, CommandLine& line) {
  app.add_option_function<std::string>(
         "--sysroot",
         [&line](const std::string& directory) { line.system_root.prefix = remove_trailing_slashes(directory); },
         "read DIR/sys and DIR/proc instead of /sys and /proc for sensors")
      ->group(std::string(kCommonOptionsGroup))
      ->type_name("DIR")
      ->check([](const std::string& directory) -> std::string {
        if (has_file_capabilities()) return "not allowed for a program with file capabilities";
        return directory.empty() ? "needs a folder" : "";
      });
}

void add_replay_option(CLI::App& app, CommandLine& line) {
  app.add_option("--replay", line.replay_option, "replay the samples of a recording instead of reading sensors")
      ->type_name("FILE");
}

int print_text(std::string_view text) {
  const Status write_status = write_to_stream(StandardStream::out, text);
  return write_status ? kExitSuccess : print_error(write_status.error());
}

// Help text of the options of joulemap itself, which precede the verb.
std::string common_options_text(const CLI::App& app) {
  const auto formatter = std::dynamic_pointer_cast<CLI::Formatter>(app.get_formatter());
  return formatter ? formatter->make_groups(&app, CLI::AppFormatMode::Normal) : std::string();
}

// CLI11 also throws for --help and --version. Prints the help or the error; returns the exit code.
int print_help_or_error(CLI::App& app, const CommandLine& line, const CLI::ParseError& error,
                        const std::optional<Error>& fault) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    if (error.get_name() == "CallForHelp" && app.get_subcommands().empty())
      return print_text(command_overview_text(commands(), style_of_stdout(line.colour)) + common_options_text(app));
    std::ostringstream text;
    app.exit(error, text, text);
    return print_text(text.str());
  }
  const std::string verb = parsed_verb_name(app);
  if (fault) return print_error(*fault, verb);
  return print_error(
      {ErrorCode::usage, error.what(), fmt::format("see joulemap {}--help", verb.empty() ? "" : verb + " ")}, verb);
}

bool is_verb_name(std::string_view word) {
  return std::ranges::any_of(commands(), [word](const Command& command) { return command.name == word; });
}

// Index of the first argument that is neither an option of joulemap itself nor the value of such an option.
std::size_t first_non_option_word(const std::vector<std::string>& arguments) {
  std::size_t argument_index = 0;
  while (argument_index < arguments.size() && arguments[argument_index].starts_with('-')) {
    const bool takes_value = arguments[argument_index] == "--color" || arguments[argument_index] == "--sysroot" ||
                             arguments[argument_index] == "--replay";
    argument_index += takes_value ? 2 : 1;
  }
  return std::min(argument_index, arguments.size());
}

// Expands shortcuts: "help record" to "record --help", and "run.joule" to "report run.joule".
std::vector<std::string> expand_shortcuts(std::vector<std::string> arguments) {
  const auto word = arguments.begin() + static_cast<std::ptrdiff_t>(first_non_option_word(arguments));
  if (word == arguments.end() || is_verb_name(*word)) return arguments;
  std::error_code error;
  if (*word == "help") {
    const auto verb = arguments.erase(word);
    if (verb == arguments.end() || is_verb_name(*verb)) arguments.emplace_back("--help");  // else: unknown verb
  } else if (word->ends_with(".joule") || std::filesystem::is_regular_file(*word, error)) {
    arguments.insert(word, "report");
  }
  return arguments;
}

int run_command_line(std::vector<std::string> arguments) {
  CommandLine line;
  line.program_path = this_program_path();
  if (Status setuid_check = check_not_setuid(line.program_path); !setuid_check)
    return print_error(setuid_check.error());
  if (Status capability_status = clear_effective_capabilities(); !capability_status)
    return print_error(capability_status.error());
  const auto double_dash = std::find(arguments.begin(), arguments.end(), "--");
  if (double_dash != arguments.end()) {
    line.has_double_dash = true;
    line.command_words.assign(double_dash + 1, arguments.end());
    arguments.erase(double_dash, arguments.end());
  }
  if (arguments.empty() && !line.has_double_dash)
    return print_text(command_overview_text(commands(), style_of_stdout(line.colour)));
  arguments = expand_shortcuts(std::move(arguments));

  CLI::App app("Maps the energy of a run to the code that uses it.", "joulemap");
  line.cli_app = &app;
  app.set_version_flag("-V,--version", fmt::format("joulemap {}", JOULEMAP_VERSION));
  add_common_options(app, line);
  add_sysroot_option(app, line);
  add_replay_option(app, line);
  app.require_subcommand(0, 1);  // at most one verb: a second one is a surplus word
  app.allow_extras();            // inherited by verbs; find_usage_error rejects what they do not take
  for (const Command& command : commands()) {
    CLI::App* verb = app.add_subcommand(std::string(command.name), std::string(command.summary));
    command.add_to_app(*verb, line);
    add_common_options(*verb, line);  // so that they may also follow the verb
    add_sysroot_option(*verb, line);
  }
  reject_empty_values(app);
  if (Status config_status = apply_config_files(app); !config_status) return print_error(config_status.error());
  std::optional<Error> fault;
  app.parse_complete_callback([&] {  // runs before the verb's callback
    if (find_usage_error(app, line, arguments)) throw CLI::ExtrasError(arguments);
    if (app.get_subcommands().empty()) throw CLI::RequiredError("a verb");
    if (std::ranges::count(line.verbs_opening_sensors, innermost_verb(app)) > 0) return;
    const Status drop_status = drop_capabilities();
    if (drop_status) return;
    fault = drop_status.error();
    throw CLI::RuntimeError(kExitFailure);
  });
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 expects them in reverse
  } catch (const CLI::ParseError& error) {
    return print_help_or_error(app, line, error, fault ? fault : find_usage_error(app, line, arguments));
  }
  return line.exit_code;
}

}  // namespace
}  // namespace joulemap::cli

int main(int argc, char** argv) { return joulemap::cli::run_command_line({argv + 1, argv + argc}); }

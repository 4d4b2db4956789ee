// SPDX-License-Identifier: Apache-2.0
//
// joulemap: the command line. Parses, runs a command, and maps its result to an exit code.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/file_capabilities.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/usage_check.h"
#include "cli/value_checks.h"

namespace joulemap::cli {
namespace {

std::string path_of_this_program() {
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

// "/" itself is the real machine, as for other tools with such a flag.
std::string without_trailing_slashes(std::string directory) {
  while (directory.ends_with('/')) directory.pop_back();
  return directory;
}

void add_sysroot(CLI::App& app, CommandLine& line) {
  app.add_option_function<std::string>(
         "--sysroot", [&line](const std::string& directory) { line.root.prefix = without_trailing_slashes(directory); },
         "read DIR/sys and DIR/proc instead of /sys and /proc for sensors")
      ->type_name("DIR")
      ->check([](const std::string& directory) -> std::string {
        if (has_file_capabilities()) return "not allowed for a program with file capabilities";
        return directory.empty() ? "needs a folder" : "";
      });
}

void add_replay(CLI::App& app, CommandLine& line) {
  app.add_option("--replay", line.replay, "replay the samples of a recording instead of reading sensors")
      ->type_name("FILE");
}

// CLI11 reports --help and --version by an exception, too.
int help_or_fault(CLI::App& app, const CLI::ParseError& error, const std::optional<Error>& fault) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    std::ostringstream text;
    app.exit(error, text, text);
    const Status written = write_to(Stream::out, text.str());
    return written ? kExitSuccess : print_error(written.error());
  }
  const std::string verb = verb_path(app);
  if (fault) return print_error(*fault, verb);
  return print_error(
      {ErrorCode::usage, error.what(), fmt::format("see joulemap {}--help", verb.empty() ? "" : verb + " ")}, verb);
}

int run(std::vector<std::string> arguments) {
  CommandLine line;
  line.program = path_of_this_program();
  if (Status same = refuse_setuid(line.program); !same) return print_error(same.error());
  if (Status unused = clear_effective_capabilities(); !unused) return print_error(unused.error());
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes != arguments.end()) {
    line.has_double_dash = true;
    line.wrapped_words.assign(dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
  }

  CLI::App app("Maps the energy of a run to the code that uses it.", "joulemap");
  app.set_version_flag("--version", fmt::format("joulemap {}", JOULEMAP_VERSION));
  add_sysroot(app, line);
  add_replay(app, line);
  app.require_subcommand(0, 1);  // a second one is a surplus word
  app.allow_extras();            // inherited by verbs; find_usage_error rejects what they do not take
  for (const Command& command : commands()) {
    CLI::App* verb = app.add_subcommand(std::string(command.name), std::string(command.summary));
    add_sysroot(*verb, line);  // before or after the verb
    command.add(*verb, line);
  }
  reject_empty_values(app);
  std::optional<Error> fault;
  app.parse_complete_callback([&] {  // runs before the verb's callback
    if (find_usage_error(app, line, arguments)) throw CLI::ExtrasError(arguments);
    if (app.get_subcommands().empty()) throw CLI::RequiredError("a verb");
    if (std::ranges::count(line.verbs_opening_sensors, innermost_verb(app)) > 0) return;
    const Status given_up = drop_capabilities();
    if (given_up) return;
    fault = given_up.error();
    throw CLI::RuntimeError(kExitFailure);
  });
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 expects them in reverse
  } catch (const CLI::ParseError& error) {
    return help_or_fault(app, error, fault ? fault : find_usage_error(app, line, arguments));
  }
  return line.exit_code;
}

}  // namespace
}  // namespace joulemap::cli

int main(int argc, char** argv) { return joulemap::cli::run({argv + 1, argv + argc}); }

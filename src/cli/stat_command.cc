// SPDX-License-Identifier: Apache-2.0
#include "cli/stat_command.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/redaction.h"
#include "cli/output.h"
#include "cli/wrapped_command.h"
#include "report/json/stat_json.h"
#include "report/text/stat_summary.h"
#include "report/text/stat_text.h"
#include "sampling/meter.h"
#include "session/stat_session.h"

namespace joulemap::cli {
namespace {

constexpr int kMaxPid = 1 << 22;  // PID_MAX_LIMIT of Linux
constexpr std::int64_t kMaxMilliseconds = 1'000LL * 3600 * 24 * 365;

struct StatFlags {
  int repeat = 1;
  std::int64_t interval_ms = 0;
  bool system_wide = false;
  std::optional<int> pid;
  std::int64_t delay_ms = 0;
  std::string sensors;
  bool json = false;
  std::string output;
  bool strict = false;
  bool keep_arguments = false;
  std::vector<std::string> command;
};

std::optional<Error> usage_error(const StatFlags& flags) {
  const auto error = [](std::string message, std::string remedy) {
    return Error{ErrorCode::usage, std::move(message), std::move(remedy)};
  };
  if (flags.system_wide && flags.pid) return error("-a and -p exclude each other", "choose one of them");
  if (flags.command.empty() && !flags.system_wide && !flags.pid) {
    return error("stat needs a command, -a or -p PID", "joulemap stat -- python train.py");
  }
  if (flags.command.empty() && flags.repeat > 1)
    return error("-r needs a command", "joulemap stat -r 5 -- python train.py");
  return std::nullopt;
}

int exit_code_of(const StatResult& result) {
  for (const StatRun& run : result.runs) {
    if (run.exit_code.value_or(kExitSuccess) != kExitSuccess) return *run.exit_code;
  }
  return kExitSuccess;
}

// Prints the result when the command has ended. Failures are printed, but joulemap still exits with the command's code.
void deliver(const StatFlags& flags, const StatResult& result, Output& output) {
  const std::string text = flags.json ? report::stat_json(result) + "\n" : report::stat_text(result);
  if (!flags.output.empty()) {
    const Status written = output.write(text);
    if (written) return;
    print_error(written.error());  // such as a full disk: print the result to stderr instead
    static_cast<void>(write_to(Stream::error, text));
    return;
  }
  // The output of the command may end without a newline.
  const Status written =
      flags.json ? write_to(Stream::out, flags.command.empty() ? text : "\n" + text) : write_to(Stream::error, text);
  if (!written) print_error(written.error());
}

session::StatOptions options_of(const StatFlags& flags) {
  session::StatOptions options;
  options.command = flags.command;
  if (flags.pid) options.pid = *flags.pid;
  options.repeat = flags.repeat;
  options.delay_ns = flags.delay_ms * kNanosecondsPerMillisecond;
  options.interval_ns = flags.interval_ms * kNanosecondsPerMillisecond;
  options.keep_intervals = flags.json;
  options.on_interval = [](const StatInterval& interval) {
    // Ignores errors: a closed stderr must not stop the measurement.
    static_cast<void>(write_to(Stream::error, report::stat_interval_text(interval, interval.from_s == 0)));
  };
  return options;
}

int run_stat(const StatFlags& flags, const CommandLine& line) {
  if (const std::optional<Error> error = usage_error(flags)) return print_error(*error);
  Result<Output> output = Output::open(flags.output, std::vector{line.replay});
  if (!output) return print_error(output.error());
  sampling::SensorOptions sensors{
      .root = line.root, .sensors = flags.sensors, .program = line.program, .replay = line.replay};
  sensors.uses_file_capabilities = true;
  if (flags.pid) sensors.measured.roots.push_back(*flags.pid);
  Result<sampling::Meter> meter = sampling::Meter::open(sensors);
  if (!meter) return print_error(meter.error());
  if (!meter->has_channels() && flags.command.empty()) {
    return print_error(
        {ErrorCode::unsupported, "no sensor or estimate is available on this machine", "run joulemap doctor"});
  }
  Result<StatResult> result = session::measure(*meter, options_of(flags));
  if (!result) return print_error(result.error());
  note_unavailable_sensors(meter->sensors(), !flags.sensors.empty(), result->diagnostics);
  if (!flags.keep_arguments) result->command = redacted_arguments(result->command);
  result->summary = report::summarize_runs(result->runs, result->interval);
  deliver(flags, *result, *output);
  Diagnostics all_diagnostics = result->diagnostics;
  for (const StatRun& run : result->runs) all_diagnostics.add_all(run.diagnostics);
  return strict_exit_code(exit_code_of(*result), flags.strict, all_diagnostics);
}

}  // namespace

void add_stat_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<StatFlags>();
  verb.footer(
      "Usage with a command: joulemap stat [OPTIONS] [--] COMMAND...\nThe table goes to stderr, --json to "
      "stdout.");
  verb.prefix_command();
  line.verbs_taking_command.push_back(&verb);
  line.verbs_opening_sensors.push_back(&verb);
  verb.add_option("-r,--repeat", flags->repeat, "run the command N times; report mean and 95 % interval")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  verb.add_option("-I,--interval", flags->interval_ms, "print energy every MS milliseconds")
      ->type_name("MS")
      ->check(CLI::Range(std::int64_t{1}, kMaxMilliseconds));
  verb.add_flag("-a,--all", flags->system_wide,
                "measure the whole machine until the command ends; without a command until Ctrl-C");
  verb.add_option("-p,--pid", flags->pid, "measure until process PID ends; report its share of CPU time")
      ->type_name("PID")
      ->check(CLI::Range(1, kMaxPid));
  verb.add_option("-D,--delay", flags->delay_ms, "start to measure MS milliseconds after the start")
      ->type_name("MS")
      ->check(CLI::Range(std::int64_t{0}, kMaxMilliseconds));
  verb.add_option("--sensors", flags->sensors, "use only these sensors, e.g. powercap,estimate")->type_name("LIST");
  add_keep_arguments(verb, flags->keep_arguments);
  verb.add_flag("--json", flags->json, "one line of JSON on stdout (schema joulemap.stat/1)");
  verb.add_option("-o,--output", flags->output, "write the result to FILE")->type_name("FILE");
  add_strict_flag(verb, flags->strict);
  verb.callback([flags, &verb, &line] {
    flags->command = wrapped_command(verb, line);
    line.exit_code = run_stat(*flags, line);
  });
}

}  // namespace joulemap::cli

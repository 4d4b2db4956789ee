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
constexpr std::int64_t kMaxDuration_ms = 1'000LL * 3600 * 24 * 365;

struct StatFlags {
  int repeat_count = 1;
  std::int64_t interval_ms = 0;
  bool measures_whole_system = false;
  std::optional<int> measured_pid;
  std::int64_t delay_ms = 0;
  std::string sensor_filter;
  bool as_json = false;
  std::string output_file;
  bool is_strict = false;
  bool keep_arguments = false;
  std::vector<std::string> command_words;
};

std::optional<Error> usage_error(const StatFlags& flags) {
  const auto error = [](std::string message, std::string remedy) {
    return Error{ErrorCode::usage, std::move(message), std::move(remedy)};
  };
  if (flags.measures_whole_system && flags.measured_pid)
    return error("-a and -p exclude each other", "choose one of them");
  if (flags.command_words.empty() && !flags.measures_whole_system && !flags.measured_pid) {
    return error("stat needs a command, -a or -p PID", "joulemap stat -- python train.py");
  }
  if (flags.command_words.empty() && flags.repeat_count > 1)
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
void print_stat_result(const StatFlags& flags, const StatResult& result, CommandOutput& output) {
  const std::string text = flags.as_json ? report::stat_json(result) + "\n" : report::stat_text(result);
  if (!flags.output_file.empty()) {
    const Status file_write_status = output.write(text);
    if (file_write_status) return;
    print_error(file_write_status.error());  // such as a full disk: print the result to stderr instead
    static_cast<void>(write_to_stream(StandardStream::error, text));
    return;
  }
  // The output of the command may end without a newline.
  const Status write_status =
      flags.as_json ? write_to_stream(StandardStream::out, flags.command_words.empty() ? text : "\n" + text)
                    : write_to_stream(StandardStream::error, text);
  if (!write_status) print_error(write_status.error());
}

session::StatOptions stat_options(const StatFlags& flags) {
  session::StatOptions options;
  options.command = flags.command_words;
  if (flags.measured_pid) options.attached_pid = *flags.measured_pid;
  options.repetitions = flags.repeat_count;
  options.delay_ns = flags.delay_ms * kNanosecondsPerMillisecond;
  options.interval_ns = flags.interval_ms * kNanosecondsPerMillisecond;
  options.keep_intervals = flags.as_json;
  options.on_interval = [](const StatInterval& interval) {
    // Ignores errors: a closed stderr must not stop the measurement.
    static_cast<void>(
        write_to_stream(StandardStream::error, report::stat_interval_text(interval, interval.from_s == 0)));
  };
  return options;
}

int measure_command(const StatFlags& flags, const CommandLine& line) {
  if (const std::optional<Error> error = usage_error(flags)) return print_error(*error);
  Result<CommandOutput> output = CommandOutput::open(flags.output_file, std::vector{line.replay_option});
  if (!output) return print_error(output.error());
  sampling::SensorOptions sensors{.root = line.system_root,
                                  .sensors = flags.sensor_filter,
                                  .program = line.program_path,
                                  .replay = line.replay_option};
  sensors.uses_file_capabilities = true;
  if (flags.measured_pid) sensors.measured_processes.root_pids.push_back(*flags.measured_pid);
  Result<sampling::Meter> meter = sampling::Meter::open(sensors);
  if (!meter) return print_error(meter.error());
  if (!meter->has_channels() && flags.command_words.empty()) {
    return print_error(
        {ErrorCode::unsupported, "no sensor or estimate is available on this machine", "run joulemap doctor"});
  }
  Result<StatResult> result = session::measure_command(*meter, stat_options(flags));
  if (!result) return print_error(result.error());
  note_unavailable_sensors(meter->sensors(), !flags.sensor_filter.empty(), result->diagnostics);
  if (!flags.keep_arguments) result->command = redact_arguments(result->command);
  result->summary = report::summarize_runs(result->runs, result->interval);
  print_stat_result(flags, *result, *output);
  Diagnostics all_diagnostics = result->diagnostics;
  for (const StatRun& run : result->runs) all_diagnostics.add_all(run.diagnostics);
  return strict_exit_code(exit_code_of(*result), flags.is_strict, all_diagnostics);
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
  line.verbs_replaying.push_back(&verb);
  verb.add_option("-r,--repeat", flags->repeat_count, "run the command N times; report mean and 95 % interval")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  verb.add_option("-I,--interval", flags->interval_ms, "print energy every MS milliseconds")
      ->type_name("MS")
      ->check(CLI::Range(std::int64_t{1}, kMaxDuration_ms));
  verb.add_flag("-a,--all", flags->measures_whole_system,
                "measure the whole machine until the command ends; without a command until Ctrl-C");
  verb.add_option("-p,--pid", flags->measured_pid,
                  "measure until process PID ends; also report its share of the CPU time")
      ->type_name("PID")
      ->check(CLI::Range(1, kMaxPid));
  verb.add_option("-D,--delay", flags->delay_ms, "start measuring MS milliseconds after the command starts")
      ->type_name("MS")
      ->check(CLI::Range(std::int64_t{0}, kMaxDuration_ms));
  verb.add_option("--sensors", flags->sensor_filter, "use only these sensors, e.g. powercap,estimate")
      ->type_name("LIST");
  add_keep_arguments_flag(verb, flags->keep_arguments);
  verb.add_flag("--json", flags->as_json, "one line of JSON on stdout (schema joulemap.stat/1)");
  verb.add_option("-o,--output", flags->output_file, "write the result to FILE")->type_name("FILE");
  add_strict_flag(verb, flags->is_strict);
  verb.callback([flags, &verb, &line] {
    flags->command_words = collect_wrapped_command(verb, line);
    line.exit_code = measure_command(*flags, line);
  });
}

}  // namespace joulemap::cli

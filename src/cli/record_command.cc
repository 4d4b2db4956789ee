// SPDX-License-Identifier: Apache-2.0
#include "cli/record_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "attribution/analysis/report_builder.h"
#include "base/clock.h"
#include "base/small_file.h"
#include "base/text.h"
#include "cli/advise_command.h"
#include "cli/capture_files.h"
#include "cli/data_folder.h"
#include "cli/kernel_library_update.h"
#include "cli/live_line.h"
#include "cli/output.h"
#include "cli/page_file.h"
#include "cli/value_checks.h"
#include "cli/wrapped_command.h"
#include "ingest/framework_traces.h"
#include "recording/calibration_file.h"
#include "recording/part_folder.h"
#include "report/json/record_json.h"
#include "report/text/record_answer.h"
#include "report/text/record_text.h"
#include "sampling/meter.h"
#include "session/environment.h"
#include "session/record_session.h"

namespace joulemap::cli {
namespace {

constexpr double kMinPeriod_ms = 0.1;
constexpr double kMaxPeriod_ms = 60'000;
constexpr double kProbe_s = 30;
constexpr double kMaxProbe_s = 3600;
constexpr int kMaxPid = 1 << 22;  // PID_MAX_LIMIT of Linux
constexpr std::size_t kMaxCommandLine_bytes = 1 << 16;

struct RecordFlags {
  std::string file{kDefaultRecording};
  std::string run;
  std::optional<double> period_ms;
  std::string trace = "auto";
  std::string sensors;
  bool dither = false;
  bool probe = false;
  std::optional<double> probe_s;
  bool no_learn = false;
  bool json = false;
  bool announce = false;
  bool strict = false;
  bool keep_arguments = false;
  std::optional<int> pid;
  std::vector<std::string> command;
};

std::optional<Error> usage_error(const RecordFlags& flags) {
  if (flags.dither && (flags.trace == "off" || flags.trace == "kernels")) {
    return Error{ErrorCode::usage,
                 fmt::format("--dither needs module calls, which --trace {} does not record", flags.trace),
                 "remove one of the two options"};
  }
  if (flags.probe && (flags.trace == "off" || flags.trace == "kernels")) {
    return Error{ErrorCode::usage, fmt::format("--probe needs modules, which --trace {} does not record", flags.trace),
                 "remove --trace"};
  }
  if (flags.command.empty() && !flags.pid) {
    return Error{ErrorCode::usage, "record needs a command or -p PID", "joulemap record -- python train.py"};
  }
  if (!flags.command.empty() && flags.pid) {
    return Error{ErrorCode::usage, "record takes a command or -p PID, not both", "choose one of them"};
  }
  if (flags.pid && (flags.dither || flags.probe)) {
    return Error{ErrorCode::usage, "--dither and --probe need a program that record starts", "remove -p"};
  }
  return std::nullopt;
}

// Requests probing: sets a variable for the processes of the command, and stores the fact in the recording.
void ask_for_probing(double seconds, session::RecordOptions& options) {
  options.variables.push_back(fmt::format("JOULEMAP_PROBE={}", seconds));
  options.environment.push_back({std::string(kProbeFact), fmt::format("at most {} s", seconds)});
}

// Requests dithering in the same way. JOULEMAP_DITHER is the seed; a value that the user has set stays.
void ask_for_dithering(session::RecordOptions& options) {
  if (std::getenv("JOULEMAP_DITHER") == nullptr) options.variables.emplace_back("JOULEMAP_DITHER=any");
  options.environment.push_back({std::string(kDitherFact), "at most 1 % of the time"});
}

// Command line of a process; empty if it cannot be read.
std::vector<std::string> command_line_of(int pid) {
  std::vector<std::string> command;
  const Result<std::string> text = read_file_start(fmt::format("/proc/{}/cmdline", pid), kMaxCommandLine_bytes);
  if (!text) return command;
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\0', begin), text->size());
    command.push_back(text->substr(begin, end - begin));
    begin = end + 1;
  }
  return command;
}

sensors::MeasuredProcessCriteria measured_processes(const RecordFlags& flags, const std::string& recording_id) {
  sensors::MeasuredProcessCriteria measured;
  if (flags.pid) measured.roots.push_back(*flags.pid);
  measured.variable = fmt::format("{}={}", recording::kRecordingIdVariable, recording_id);
  std::error_code error;  // ignored: without a folder, the other criteria still identify the processes
  measured.recording_folder = std::filesystem::weakly_canonical(
      std::filesystem::absolute(recording::recording_folder(flags.file), error), error);
  return measured;
}

// Whether the model name of a GPU is known. The kernel library needs it, because its powers are per GPU model.
bool has_known_gpu(std::span<const Channel> channels) {
  return std::any_of(channels.begin(), channels.end(),
                     [](const Channel& channel) { return !channel.device_model.empty(); });
}

// The new recording by layer, and its most valuable finding; empty if the recording was not merged into one file or
// cannot be read.
std::string answer_of(const RecordResult& result, const report::TextStyle& style) {
  if (result.file_bytes == 0) return {};
  const std::vector files{result.file};
  const std::array levels{attribution::RowLevel::layer, attribution::RowLevel::module};
  const Result<std::vector<ReportResult>> reports =
      attribution::build_reports(files, attribution::ReportQuery(), levels);
  if (!reports) return {};
  const Result<Advice> advice = advice_on(files, attribution::ReportQuery());
  return report::record_answer_text({reports->front(), reports->back(), advice ? *advice : Advice(), result.file},
                                    style);
}

// Prints the result when the command has ended: JSON to stdout, or text to stderr.
Status print_ending(const RecordResult& result, const RecordFlags& flags, bool replaces_file, const CommandLine& line) {
  // The output of the command may end without a newline.
  if (flags.json) return write_to(Stream::out, "\n" + report::record_json(result) + "\n");
  if (line.quiet) return Done{};
  const report::TextStyle style = style_of_stderr(line.colour);
  std::string text = answer_of(result, style);
  if (text.empty() || line.verbose) text += report::record_text(result);
  if (replaces_file && result.file_bytes > 0)
    text += fmt::format(" the previous {0} is now {0}.old\n", printable(result.file));
  return write_to(Stream::error, text + report::record_notes(result));
}

int run_record(const RecordFlags& flags, const CommandLine& line) {
  if (const std::optional<Error> error = usage_error(flags)) return print_error(*error);
  if (const Status distinct = check_not_input(flags.file, with_part_folders(std::vector{line.replay})); !distinct) {
    return print_error(distinct.error());
  }
  sampling::SensorOptions sensors{
      .root = line.root, .sensors = flags.sensors, .program = line.program, .replay = line.replay};
  sensors.uses_file_capabilities = true;
  if (flags.period_ms) {
    sensors.period_ns = static_cast<std::int64_t>(*flags.period_ms * static_cast<double>(kNanosecondsPerMillisecond));
  }
  const std::string recording_id = recording::choose_recording_id(flags.run);
  sensors.measured = measured_processes(flags, recording_id);
  Result<sampling::Meter> meter = sampling::Meter::open(sensors);
  if (!meter) return print_error(meter.error());
  session::RecordOptions options;
  options.command = flags.pid ? command_line_of(*flags.pid) : flags.command;
  options.attached_pid = flags.pid;
  options.keep_arguments = flags.keep_arguments;
  if (flags.announce) {
    options.on_begun = [](std::span<const std::string> variables) {
      return write_to(Stream::out, report::recording_json(variables) + "\n");
    };
  }
  options.read_framework_traces = ingest::read_framework_traces;
  options.file = flags.file;
  options.recording_id = recording_id;
  options.environment = session::describe_environment(line.root);
  // Without stored calibrations, the analysis uses the nominal values of the channels.
  if (const auto known = recording::load_calibrations(calibration_path())) {
    options.calibration = recording::calibrations_for_channels(*known, meter->channels());
  }
  Diagnostics capture_notes;
  if (flags.trace != "off") {
    const Result<CaptureFiles> files = find_capture_files(program_path());
    if (!files) {
      capture_notes.add({"no_capture", 1, files.error().message, files.error().remedy});
    } else {
      CaptureEnvironment capture = capture_environment(*files, flags.trace);
      options.variables = std::move(capture.variables);
      capture_notes = std::move(capture.diagnostics);
      if (flags.dither) ask_for_dithering(options);
      if (flags.probe) ask_for_probing(flags.probe_s.value_or(kProbe_s), options);
    }
  }
  options.diagnostics = capture_notes;
  // With --sysroot or --replay the sensors are not those of this machine: the kernel library is not used.
  const bool is_real = line.root.is_real() && line.replay.empty() && has_known_gpu(meter->channels());
  const std::string library = kernel_library_path();
  if (is_real && flags.trace != "off") {
    options.known_powers = [&](const std::string& folder, Diagnostics& diagnostics) {
      return read_library_powers(library, folder, diagnostics);
    };
  }
  std::unique_ptr<LiveLine> live = line.quiet || flags.announce ? nullptr : LiveLine::open();
  if (live) options.on_status = [&](const LiveStatus& status) { live->show(report::live_text(status)); };
  std::error_code error;  // ignored: then nothing is said about the file
  const bool replaces_file = std::filesystem::exists(flags.file, error);
  Result<RecordResult> result = session::record(*meter, options);
  live.reset();
  if (!result) return print_error(result.error());
  const bool is_joined = result->file_bytes > 0;  // otherwise the parts stay in their folder
  if (is_real && is_joined && !flags.no_learn && flags.trace != "off") update_kernel_library(library, *result);
  note_unavailable_sensors(meter->sensors(), !flags.sensors.empty(), result->diagnostics);
  const Status written = print_ending(*result, flags, replaces_file, line);
  if (!written) print_error(written.error());
  Diagnostics all_diagnostics = result->diagnostics;
  all_diagnostics.add_all(result->energy.diagnostics);
  return strict_exit_code(result->exit_code.value_or(kExitSuccess), flags.strict, all_diagnostics);
}

}  // namespace

void add_record_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<RecordFlags>();
  verb.footer(
      "Usage: joulemap record [OPTIONS] [--] COMMAND...\n   or: joulemap record -p PID [OPTIONS]\nThe summary goes to "
      "stderr; joulemap report shows the details.");
  verb.prefix_command();
  line.verbs_taking_command.push_back(&verb);
  line.verbs_opening_sensors.push_back(&verb);
  verb.add_option("-o,--output", flags->file,
                  "write the recording to FILE (run.joule); an existing one becomes FILE.old")
      ->type_name("FILE");
  verb.add_option("-p,--pid", flags->pid,
                  "record until process PID ends or Ctrl-C; its kernels and layers once it joins (--announce)")
      ->type_name("PID")
      ->check(CLI::Range(1, kMaxPid));
  verb.add_flag("--announce", flags->announce,
                "print one line of JSON at the start: the variables with which a process joins the recording");
  verb.add_option("--period", flags->period_ms, "read all sensors every MS milliseconds; default: per sensor")
      ->type_name("MS")
      ->check(number_between(kMinPeriod_ms, kMaxPeriod_ms));
  verb.add_option("--trace", flags->trace,
                  "tracing: auto (light if full would slow the run), full, light, kernels, off")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"auto", "full", "light", "kernels", "off"}));
  verb.add_flag("--dither", flags->dither,
                "pause PyTorch for 20 to 40 ms at random modules, at most 1 % of the time, so that steps differ");
  verb.add_flag("--probe", flags->probe, "replay PyTorch modules at the end to measure the power of each");
  verb.add_option("--probe-seconds", flags->probe_s, "same as --probe, for at most S seconds (30)")
      ->type_name("S")
      ->check(number_between(0.1, kMaxProbe_s));
  verb.add_option("--run", flags->run, "name of a run that several machines record; report merges their files")
      ->type_name("NAME");
  add_keep_arguments(verb, flags->keep_arguments);
  verb.add_flag("--no-learn", flags->no_learn, "do not add the kernel powers of this run to the kernel library");
  verb.add_option("--sensors", flags->sensors, "use only these sensors, e.g. powercap,estimate")->type_name("LIST");
  verb.add_flag("--json", flags->json, "one line of JSON on stdout (schema joulemap.record/1)");
  add_strict_flag(verb, flags->strict);
  verb.callback([flags, &verb, &line] {
    flags->probe = flags->probe || flags->probe_s;
    flags->command = wrapped_command(verb, line);
    line.exit_code = run_record(*flags, line);
  });
}

}  // namespace joulemap::cli

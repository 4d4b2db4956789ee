// SPDX-License-Identifier: Apache-2.0
#include "cli/record_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <tuple>

#include "attribution/analysis/report_builder.h"
#include "base/clock.h"
#include "base/small_file.h"
#include "base/text.h"
#include "cli/advise_command.h"
#include "cli/capture_files.h"
#include "cli/data_folder.h"
#include "cli/kernel_library_update.h"
#include "cli/live_status_line.h"
#include "cli/output.h"
#include "cli/page_file.h"
#include "cli/value_checks.h"
#include "cli/wrapped_command.h"
#include "ingest/framework_traces.h"
#include "recording/calibration_file.h"
#include "recording/part_folder.h"
#include "report/json/record_json.h"
#include "report/text/record_summary.h"
#include "report/text/record_text.h"
#include "sampling/meter.h"
#include "session/environment.h"
#include "session/record_session.h"

namespace joulemap::cli {
namespace {

constexpr double kMinSamplingPeriod_ms = 0.1;
constexpr double kMaxSamplingPeriod_ms = 60'000;
constexpr double kDefaultProbeLimit_s = 30;
constexpr double kMaxProbeLimit_s = 3600;
constexpr int kMaxPid = 1 << 22;  // PID_MAX_LIMIT of Linux
constexpr std::size_t kMaxCommandLine_bytes = 1 << 16;

struct RecordFlags {
  std::string recording_file{kDefaultRecording};
  std::string shared_run_name;
  std::optional<double> sampling_period_ms;
  std::string trace_mode = "auto";
  std::string sensor_filter;
  bool dithers_launches = false;
  bool probes_layers = false;
  std::optional<double> probe_limit_s;
  bool skips_library_update = false;
  bool as_json = false;
  bool prints_recording_variables = false;
  bool is_strict = false;
  bool keep_arguments = false;
  std::optional<int> measured_pid;
  std::vector<std::string> command_words;
};

std::optional<Error> usage_error(const RecordFlags& flags) {
  if (flags.dithers_launches && (flags.trace_mode == "off" || flags.trace_mode == "kernels")) {
    return Error{ErrorCode::usage,
                 fmt::format("--dither needs module calls, which --trace {} does not record", flags.trace_mode),
                 "remove one of the two options"};
  }
  if (flags.probes_layers && (flags.trace_mode == "off" || flags.trace_mode == "kernels")) {
    return Error{ErrorCode::usage,
                 fmt::format("--probe needs modules, which --trace {} does not record", flags.trace_mode),
                 "remove --trace"};
  }
  if (flags.command_words.empty() && !flags.measured_pid) {
    return Error{ErrorCode::usage, "record needs a command or -p PID", "joulemap record -- python train.py"};
  }
  if (!flags.command_words.empty() && flags.measured_pid) {
    return Error{ErrorCode::usage, "record takes a command or -p PID, not both", "choose one of them"};
  }
  if (flags.measured_pid && (flags.dithers_launches || flags.probes_layers)) {
    return Error{ErrorCode::usage, "--dither and --probe need a program that record starts", "remove -p"};
  }
  return std::nullopt;
}

// Requests probing: sets a variable for the processes of the command, and stores the fact in the recording.
void request_probing(double seconds, session::RecordOptions& options) {
  options.command_variables.push_back(fmt::format("JOULEMAP_PROBE={}", seconds));
  options.environment_facts.push_back({std::string(kProbeFactName), fmt::format("at most {} s", seconds)});
}

// Requests dithering in the same way. JOULEMAP_DITHER is the seed; a value that the user has set stays.
void request_dithering(session::RecordOptions& options) {
  if (std::getenv("JOULEMAP_DITHER") == nullptr) options.command_variables.emplace_back("JOULEMAP_DITHER=any");
  options.environment_facts.push_back({std::string(kDitherFactName), "at most 1 % of the time"});
}

// Command line of a process; empty if it cannot be read.
std::vector<std::string> read_command_line(int pid) {
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

sensors::MeasuredProcessCriteria describe_measured_processes(const RecordFlags& flags,
                                                             const std::string& recording_id) {
  sensors::MeasuredProcessCriteria measured;
  if (flags.measured_pid) measured.root_pids.push_back(*flags.measured_pid);
  measured.environment_assignment = fmt::format("{}={}", recording::kRecordingIdVariable, recording_id);
  std::error_code error;  // ignored: without a folder, the other criteria still identify the processes
  measured.recording_folder = std::filesystem::weakly_canonical(
      std::filesystem::absolute(recording::recording_folder(flags.recording_file), error), error);
  return measured;
}

// Whether the model name of a GPU is known. The kernel library needs it, because its powers are per GPU model.
bool has_known_gpu_model(std::span<const Channel> channels) {
  return std::any_of(channels.begin(), channels.end(),
                     [](const Channel& channel) { return !channel.device_model.empty(); });
}

// The new recording by layer, and its most valuable finding; empty if the recording was not merged into one file or
// cannot be read.
std::string make_record_summary(const RecordResult& result, const report::TextStyle& style) {
  if (result.file_bytes == 0) return {};
  const std::vector files{result.file};
  const std::array levels{attribution::RowLevel::layer, attribution::RowLevel::module, attribution::RowLevel::op};
  const Result<std::vector<ReportResult>> reports =
      attribution::build_reports(files, attribution::ReportQuery(), levels);
  if (!reports) return {};
  const auto& [by_layer, by_module, by_operation] = std::tie((*reports)[0], (*reports)[1], (*reports)[2]);
  const Result<Advice> advice = advise_on_recordings(files, attribution::ReportQuery(), by_operation);
  return report::record_summary_text({by_layer, by_module, advice ? *advice : Advice(), result.file}, style);
}

// What becomes of an existing file when a command is recorded to it, as a sentence; empty if there is none.
std::string describe_replaced_file(const std::string& file) {
  std::error_code error;  // ignored: then nothing is said about the file
  if (!std::filesystem::exists(file, error)) return {};
  const std::string printable_file = printable(file);
  if (recording::keeps_older_backup(file))
    return fmt::format(" the previous {0}, of a command that failed, is replaced; {0}.old stays\n", printable_file);
  return fmt::format(" the previous {0} is now {0}.old\n", printable_file);
}

// Prints the result when the command has ended: JSON to stdout, or text to stderr.
Status print_record_result(const RecordResult& result, const RecordFlags& flags, const std::string& replaced_file_text,
                           const CommandLine& line) {
  // The output of the command may end without a newline.
  if (flags.as_json) return write_to_stream(StandardStream::out, "\n" + report::record_json(result) + "\n");
  if (line.quiet) return Done{};
  const report::TextStyle style = style_of_stderr(line.colour);
  std::string text = make_record_summary(result, style);
  if (text.empty() || line.is_verbose) text += report::record_text(result);
  if (result.file_bytes > 0) text += replaced_file_text;
  return write_to_stream(StandardStream::error, text + report::record_diagnostics_text(result));
}

int run_record(const RecordFlags& flags, const CommandLine& line) {
  if (const std::optional<Error> error = usage_error(flags)) return print_error(*error);
  if (const Status output_check =
          check_output_is_not_input(flags.recording_file, add_part_folders(std::vector{line.replay_option}));
      !output_check) {
    return print_error(output_check.error());
  }
  sampling::SensorOptions sensors{.root = line.system_root,
                                  .sensors = flags.sensor_filter,
                                  .program = line.program_path,
                                  .replay = line.replay_option};
  sensors.uses_file_capabilities = true;
  // Read before sensors are opened, which takes time in which the process can end.
  std::vector<std::string> command = flags.measured_pid ? read_command_line(*flags.measured_pid) : flags.command_words;
  if (flags.sampling_period_ms) {
    sensors.period_ns =
        static_cast<std::int64_t>(*flags.sampling_period_ms * static_cast<double>(kNanosecondsPerMillisecond));
  }
  const std::string recording_id = recording::choose_recording_id(flags.shared_run_name);
  sensors.measured_processes = describe_measured_processes(flags, recording_id);
  Result<sampling::Meter> meter = sampling::Meter::open(sensors);
  if (!meter) return print_error(meter.error());
  session::RecordOptions options;
  options.command = std::move(command);
  options.attached_pid = flags.measured_pid;
  options.keep_arguments = flags.keep_arguments;
  if (flags.prints_recording_variables) {
    options.on_recording_begun = [](std::span<const std::string> variables) {
      return write_to_stream(StandardStream::out, report::recording_variables_json(variables) + "\n");
    };
  }
  options.read_framework_traces = ingest::read_framework_traces;
  options.output_file = flags.recording_file;
  options.recording_id = recording_id;
  options.environment_facts = session::describe_environment(line.system_root);
  // Without stored calibrations, the analysis uses the nominal values of the channels.
  if (const auto stored_calibrations = recording::load_calibrations(calibration_path())) {
    options.channel_calibrations = recording::find_calibrations_for_channels(*stored_calibrations, meter->channels());
  }
  Diagnostics capture_diagnostics;
  if (flags.trace_mode != "off") {
    const Result<CaptureFiles> files = find_capture_files(program_path());
    if (!files) {
      capture_diagnostics.add({"no_capture", 1, files.error().message, files.error().remedy});
    } else {
      CaptureEnvironment capture = make_capture_environment(*files, flags.trace_mode);
      options.command_variables = std::move(capture.variables);
      capture_diagnostics = std::move(capture.diagnostics);
      if (flags.dithers_launches) request_dithering(options);
      if (flags.probes_layers) request_probing(flags.probe_limit_s.value_or(kDefaultProbeLimit_s), options);
    }
  }
  options.setup_diagnostics = capture_diagnostics;
  // With --sysroot or --replay the sensors are not those of this machine: the kernel library is not used.
  const bool is_this_machine =
      line.system_root.is_this_machine() && line.replay_option.empty() && has_known_gpu_model(meter->channels());
  const std::string library = kernel_library_path();
  if (is_this_machine && flags.trace_mode != "off") {
    options.find_known_kernel_powers = [&](const std::string& folder, Diagnostics& diagnostics) {
      return read_powers_from_kernel_library(library, folder, diagnostics);
    };
  }
  std::unique_ptr<LiveStatusLine> live_status_line =
      line.quiet || flags.prints_recording_variables ? nullptr : LiveStatusLine::open();
  if (live_status_line)
    options.on_status = [&](const LiveStatus& status) { live_status_line->show(report::live_status_text(status)); };
  const std::string replaced_file_text = describe_replaced_file(flags.recording_file);
  Result<RecordResult> result = session::record_command(*meter, options);
  live_status_line.reset();
  if (!result) return print_error(result.error());
  const bool is_joined_into_file = result->file_bytes > 0;  // otherwise the parts stay in their folder
  if (is_this_machine && is_joined_into_file && !flags.skips_library_update && flags.trace_mode != "off")
    update_kernel_library(library, *result);
  note_unavailable_sensors(meter->sensors(), !flags.sensor_filter.empty(), result->diagnostics);
  const Status print_status = print_record_result(*result, flags, replaced_file_text, line);
  if (!print_status) print_error(print_status.error());
  Diagnostics all_diagnostics = result->diagnostics;
  all_diagnostics.add_all(result->energy.diagnostics);
  return strict_exit_code(result->exit_code.value_or(kExitSuccess), flags.is_strict, all_diagnostics);
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
  line.verbs_replaying.push_back(&verb);
  verb.add_option(
          "-o,--output", flags->recording_file,
          "write the recording to FILE; default: run.joule; an existing one becomes FILE.old, unless its command "
          "failed")
      ->type_name("FILE");
  verb.add_option("-p,--pid", flags->measured_pid,
                  "record until process PID ends or Ctrl-C; kernels and layers only after it joins, see --announce")
      ->type_name("PID")
      ->check(CLI::Range(1, kMaxPid));
  verb.add_flag("--announce", flags->prints_recording_variables,
                "print one line of JSON at the start: the environment of a process that joins the recording");
  verb.add_option("--period", flags->sampling_period_ms, "read all sensors every MS milliseconds; default: per sensor")
      ->type_name("MS")
      ->check(number_range_validator(kMinSamplingPeriod_ms, kMaxSamplingPeriod_ms));
  verb.add_option(
          "--trace", flags->trace_mode,
          "auto (full, or light if that would slow the run), full, light (some steps), kernels (no modules), off")
      ->type_name("WHAT")
      ->check(word_choice_validator({"auto", "full", "light", "kernels", "off"}));
  verb.add_flag("--dither", flags->dithers_launches,
                "pause PyTorch for 20 to 40 ms at random modules, at most 1 % of the time, to separate their power");
  verb.add_flag("--probe", flags->probes_layers, "replay PyTorch modules at the end to measure the power of each");
  verb.add_option("--probe-seconds", flags->probe_limit_s, "same as --probe, for at most S seconds; default: 30")
      ->type_name("S")
      ->check(number_range_validator(0.1, kMaxProbeLimit_s));
  verb.add_option("--run", flags->shared_run_name,
                  "name of a run that several machines record; report merges their files")
      ->type_name("NAME");
  add_keep_arguments_flag(verb, flags->keep_arguments);
  verb.add_flag("--no-learn", flags->skips_library_update,
                "do not add kernel powers of this run to the kernel library, the priors of later runs");
  verb.add_option("--sensors", flags->sensor_filter, "use only these sensors, e.g. powercap,estimate")
      ->type_name("LIST");
  verb.add_flag("--json", flags->as_json, "one line of JSON on stdout (schema joulemap.record/1)");
  add_strict_flag(verb, flags->is_strict);
  verb.callback([flags, &verb, &line] {
    flags->probes_layers = flags->probes_layers || flags->probe_limit_s;
    flags->command_words = collect_wrapped_command(verb, line);
    line.exit_code = run_record(*flags, line);
  });
}

}  // namespace joulemap::cli

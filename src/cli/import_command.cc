// SPDX-License-Identifier: Apache-2.0
#include "cli/import_command.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "base/redaction.h"
#include "base/small_file.h"
#include "base/text.h"
#include "cli/import_experiment.h"
#include "cli/output.h"
#include "cli/page_file.h"
#include "cli/progress_line.h"
#include "cli/value_checks.h"
#include "ingest/cprofile/cprofile.h"
#include "ingest/detect_format.h"
#include "ingest/import_recording.h"
#include "ingest/trace_file.h"
#include "ingest/trace_formats.h"
#include "report/json/import_json.h"
#include "report/text/import_text.h"

namespace joulemap::cli {
namespace {

// Formats whose inputs are power logs, without a trace.
constexpr std::string_view kNvidiaSmiFormat = "nvidia-smi";
constexpr std::string_view kPowerCsvFormat = "csv";
constexpr std::size_t kMaxModules = std::size_t{64} << 20;
constexpr double kMaxTraceOffset_ms = 4e12;  // from 1970 to 2096, so that any two times can be aligned

struct ImportFlags {
  std::string format_name;  // as the user names it, or detected from the content of the first input
  std::vector<std::string> input_files;
  std::vector<std::string> power_files;
  std::string module_names_file;
  std::vector<std::string> gpu_mappings;
  double trace_offset_ms = 0;
  std::optional<std::int64_t> start_ns;
  std::string utc_offset;
  std::string epoch_log_pattern;
  std::string file_name_pattern;
  std::string output_file{kDefaultRecording};
  bool as_json = false;
};

Error import_usage_error(std::string message, std::string remedy) {
  return {ErrorCode::usage, std::move(message), std::move(remedy)};
}

// Parses --map: "0=gpu1" maps GPU 0 of all traces to domain gpu1, "2:0=gpu1" only of the third input.
Status add_gpu_mapping(std::string_view text, ingest::ImportOptions& options) {
  const Error mapping_error = import_usage_error(
      fmt::format("--map {} is not of the form N=GPU", joulemap::quoted(text)), "--map 0=gpu1, or INPUT:0=gpu1");
  const std::size_t equals_position = text.find('=');
  if (equals_position == std::string_view::npos || equals_position + 1 == text.size()) return mapping_error;
  std::string_view ordinal = text.substr(0, equals_position);
  std::optional<std::size_t> input;
  if (const std::size_t colon = ordinal.find(':'); colon != std::string_view::npos) {
    input = parse_u64(ordinal.substr(0, colon));
    if (!input) return mapping_error;
    ordinal.remove_prefix(colon + 1);
  }
  const std::optional<std::uint64_t> number = parse_u64(ordinal);
  if (!number || *number > UINT32_MAX) return mapping_error;
  options.gpu_mappings[{input, static_cast<std::uint32_t>(*number)}] = std::string(text.substr(equals_position + 1));
  return Done{};
}

// Parses "+01:00", "-0530", "Z" or "0" to seconds.
std::optional<std::int64_t> parse_utc_offset(std::string_view text) {
  if (text == "Z" || text == "UTC" || text == "0") return 0;
  if (text.empty() || (text.front() != '+' && text.front() != '-')) return std::nullopt;
  const std::int64_t sign = text.front() == '-' ? -1 : 1;
  std::string digits;
  for (const char letter : text.substr(1)) {
    if (letter != ':') digits += letter;
  }
  if (digits.size() == 1 || digits.size() == 3) digits.insert(0, "0");
  if (digits.size() == 2) digits += "00";
  const std::optional<std::uint64_t> number = digits.size() == 4 ? parse_u64("1" + digits) : std::nullopt;
  if (!number) return std::nullopt;
  const std::int64_t hours = static_cast<std::int64_t>(*number % 10'000) / 100;
  const std::int64_t minutes = static_cast<std::int64_t>(*number % 100);
  if (hours > 15 || minutes > 59) return std::nullopt;
  return sign * (hours * 3600 + minutes * 60);
}

bool is_power_log_format(const ImportFlags& flags) {
  return flags.format_name == kNvidiaSmiFormat || flags.format_name == kPowerCsvFormat;
}

// --utc-offset in seconds; none if the option is not set.
Result<std::optional<std::int64_t>> utc_offset_seconds(const ImportFlags& flags) {
  if (flags.utc_offset.empty()) return std::optional<std::int64_t>();
  const std::optional<std::int64_t> utc_offset_s = parse_utc_offset(flags.utc_offset);
  if (utc_offset_s) return utc_offset_s;
  return import_usage_error(fmt::format("--utc-offset {} is not a UTC offset", joulemap::quoted(flags.utc_offset)),
                            "--utc-offset +01:00");
}

bool is_experiment_import(const ImportFlags& flags) {
  return flags.format_name == kPrengdlFormat || !flags.epoch_log_pattern.empty() || !flags.file_name_pattern.empty();
}

Result<ingest::PowerLog> read_power_logs(const ImportFlags& flags) {
  const Result<std::optional<std::int64_t>> utc_offset_s = utc_offset_seconds(flags);
  if (!utc_offset_s) return utc_offset_s.error();
  std::vector<std::string> files = flags.power_files;
  if (is_power_log_format(flags)) files.insert(files.begin(), flags.input_files.begin(), flags.input_files.end());
  std::vector<ingest::PowerLog> logs;
  for (const std::string& file : files) {
    const Result<ingest::TraceBytes> text = ingest::read_trace_file(file);
    if (!text) return text.error();
    Result<ingest::PowerLog> log = ingest::parse_power_log(text->view(), file, *utc_offset_s);
    if (!log) return std::move(log).error();
    text->report_damage(log->diagnostics);
    logs.push_back(std::move(*log));
  }
  return ingest::merge_power_logs(std::move(logs));
}

Result<ingest::ImportOptions> parse_import_options(const ImportFlags& flags) {
  ingest::ImportOptions options;
  options.output_path = flags.output_file;
  options.command = {"joulemap", "import", flags.format_name};
  options.command.insert(options.command.end(), flags.input_files.begin(), flags.input_files.end());
  options.command = redact_arguments(options.command);
  options.trace_offset_ns = std::llround(flags.trace_offset_ms * static_cast<double>(kNanosecondsPerMillisecond));
  options.trace_start_ns = flags.start_ns;
  for (const std::string& mapping : flags.gpu_mappings) {
    if (Status mapping_status = add_gpu_mapping(mapping, options); !mapping_status)
      return std::move(mapping_status).error();
  }
  if (!flags.module_names_file.empty()) {
    const Result<std::string> text = read_file_start(flags.module_names_file, kMaxModules);
    if (!text) return text.error();
    Result<scopes::ModuleNames> names = scopes::parse_module_names_json(*text);
    if (!names) return std::move(names).error().with_context(flags.module_names_file);
    options.module_names = *std::move(names);
  }
  return options;
}

bool is_format_name(std::string_view word) {
  return word == kNvidiaSmiFormat || word == kPowerCsvFormat || word == kPrengdlFormat ||
         word == ingest::kCprofileFormat || ingest::find_trace_format(word) != nullptr;
}

std::optional<Error> usage_error(const ImportFlags& flags) {
  if (is_experiment_import(flags)) {
    if (flags.format_name == ingest::kCprofileFormat &&
        (!flags.epoch_log_pattern.empty() || !flags.power_files.empty())) {
      return import_usage_error("profiles of an experiment take neither --epochs nor --power: they have no times",
                                "import one profile with --power, without --pattern");
    }
    const bool is_profile_import = flags.format_name == ingest::kCprofileFormat;
    if (is_profile_import || flags.format_name == kPrengdlFormat || is_power_log_format(flags)) return std::nullopt;
    return import_usage_error("--epochs and --pattern need power logs or profiles as input",
                              "joulemap import nvidia-smi POWER.csv --epochs EPOCHS.csv");
  }
  if (is_format_name(flags.format_name)) return std::nullopt;
  std::string known_formats;
  for (const ingest::TraceFormat& format : ingest::trace_formats()) known_formats += std::string(format.name) + ", ";
  return import_usage_error(fmt::format("unknown import format {}", joulemap::quoted(flags.format_name)),
                            fmt::format("use one of {}cprofile, nvidia-smi, csv, prengdl", known_formats));
}

// Part of the progress that reading a trace takes; assigning its events to scopes is assumed to take as long.
constexpr double kReadingProgressShare = 0.5;

Result<ImportResult> import_traces(const ImportFlags& flags, const CommandLine& line) {
  Result<ingest::ImportOptions> options = parse_import_options(flags);
  if (!options) return std::move(options).error();
  Result<ingest::PowerLog> power = read_power_logs(flags);
  if (!power) return std::move(power).error();
  const ingest::TraceFormat* const format = ingest::find_trace_format(flags.format_name);
  std::optional<ingest::ImportSession> session;
  const auto begin = [&]() -> Status {
    if (session) return Done{};
    Result<ingest::ImportSession> begun = ingest::ImportSession::begin(std::move(*options), std::move(*power));
    if (!begun) return std::move(begun).error();
    session.emplace(std::move(*begun));
    return Done{};
  };
  const bool is_profile_import = flags.format_name == ingest::kCprofileFormat;
  for (std::size_t number = 0; is_profile_import && number < flags.input_files.size(); ++number) {
    const Result<ingest::FunctionProfile> profile = ingest::read_cprofile(flags.input_files[number]);
    Status add_status = profile ? begin() : Status(profile.error());
    if (add_status) add_status = session->add(*profile, flags.input_files[number]);
    if (add_status) continue;
    if (session) session->remove_written_parts();
    return std::move(add_status).error();
  }
  const bool are_inputs_steps = format != nullptr && format->read_steps != nullptr;
  const std::size_t traces = format == nullptr ? 0 : are_inputs_steps ? 1 : flags.input_files.size();
  options->trace_count = traces;
  for (std::size_t number = 0; number < traces; ++number) {
    const std::string& input = flags.input_files[number];
    ProgressLine progress("importing " + input, line);
    // The trace is read before begin() creates the recording, so that an unreadable trace leaves no file.
    Result<ingest::Trace> trace =
        are_inputs_steps ? format->read_steps(flags.input_files)
                         : format->read(input, make_partial_progress_callback(progress.make_progress_callback(), 0,
                                                                              kReadingProgressShare));
    report_progress(progress.make_progress_callback(), kReadingProgressShare);
    Status add_status = trace ? begin() : Status(std::move(trace).error());
    if (add_status) add_status = session->add(std::move(*trace), input);
    if (add_status) continue;
    if (session) session->remove_written_parts();
    return std::move(add_status).error();
  }
  if (Status begun = begin(); !begun) return std::move(begun).error();
  Result<ImportResult> result = session->finish();
  if (!result) {
    session->remove_written_parts();
    return result;
  }
  result->format = flags.format_name;
  result->inputs = flags.input_files;
  return result;
}

// Inputs that must not be overwritten. Folders count only if the output exists: a new file may be created in them.
std::vector<std::string> import_input_files(const ImportFlags& flags) {
  std::vector<std::string> inputs = flags.power_files;
  inputs.push_back(flags.module_names_file);
  const bool is_new = !file_exists(flags.output_file);
  for (const std::string& input : flags.input_files) {
    std::error_code error;
    if (!is_new || !std::filesystem::is_directory(input, error)) inputs.push_back(input);
  }
  return inputs;
}

// In "import trace.json" the first word is an input instead of a format: detects the format from its content. A word
// with a dot or slash is an input even if there is no such file.
Status detect_input_format(ImportFlags& flags) {
  std::error_code error;
  if (flags.format_name.empty() || is_format_name(flags.format_name)) return Done{};
  const bool is_path = flags.format_name.find_first_of("./") != std::string::npos;
  if (!is_path && !std::filesystem::exists(flags.format_name, error)) return Done{};
  flags.input_files.insert(flags.input_files.begin(), flags.format_name);
  Result<std::string> format = ingest::detect_format(flags.input_files.front());
  if (!format) return std::move(format).error();
  flags.format_name = std::move(*format);
  return Done{};
}

int run_import(ImportFlags flags, const CommandLine& line) {
  if (const Status format_status = detect_input_format(flags); !format_status)
    return print_error(format_status.error());
  if (flags.input_files.empty() && (flags.format_name.empty() || is_format_name(flags.format_name)))
    return print_error(import_usage_error("import needs an input", "joulemap import trace.json"));
  if (const std::optional<Error> error = usage_error(flags)) return print_error(*error);
  if (is_experiment_import(flags)) {
    const Result<std::optional<std::int64_t>> utc_offset_s = utc_offset_seconds(flags);
    if (!utc_offset_s) return print_error(utc_offset_s.error());
    return run_experiment_import({flags.format_name, flags.input_files, flags.file_name_pattern,
                                  flags.epoch_log_pattern, *utc_offset_s, flags.output_file, flags.as_json});
  }
  if (const Status output_check = check_output_is_not_input(flags.output_file, import_input_files(flags));
      !output_check)
    return print_error(output_check.error());
  const Result<ImportResult> result = import_traces(flags, line);
  if (!result) return print_error(result.error());
  const Status write_status = flags.as_json ? write_to_stream(StandardStream::out, report::import_json(*result) + "\n")
                                            : write_to_stream(StandardStream::error, report::import_text(*result));
  return write_status ? kExitSuccess : print_error(write_status.error());
}

}  // namespace

void add_import_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<ImportFlags>();
  std::string formats;
  for (const ingest::TraceFormat& format : ingest::trace_formats()) {
    formats += fmt::format("  {:<12} {}\n", format.name, format.file_description);
  }
  verb.footer(
      fmt::format("Usage: joulemap import [OPTIONS] [FORMAT] INPUT...\nFormats:\n{}  {:<12} {}\n  {:<12} {}\n  {:<12} "
                  "{}\n  {:<12} {}",
                  formats, ingest::kCprofileFormat, "Python's cProfile: *.prof, *.pstats; with --pattern an experiment",
                  kNvidiaSmiFormat, "a power log; with --epochs or --pattern an experiment", kPowerCsvFormat,
                  "a power log with the columns time_unix_ns,domain,kind,value", kPrengdlFormat,
                  "the folder of the PrEnGDL measurements, as an experiment"));
  verb.add_option("FORMAT", flags->format_name,
                  "format of the inputs, see below; default: detected from their content");
  verb.add_option("INPUT", flags->input_files,
                  "input files; several are the ranks of one run; with tensorflow, its steps");
  verb.add_option("--power", flags->power_files,
                  "power log of the same period: CSV time_unix_ns,domain,kind,value, or nvidia-smi output; repeatable")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  verb.add_option("--modules", flags->module_names_file, "layer paths of the model, written by jm.save_module_names")
      ->type_name("FILE");
  verb.add_option("--map", flags->gpu_mappings,
                  "GPU 0 of the trace is gpu1 of the log: 0=gpu1; only in the third input: 2:0=gpu1")
      ->type_name("N=GPU")
      ->expected(1)
      ->take_all();
  verb.add_option("--offset-ms", flags->trace_offset_ms, "add MS milliseconds to the timestamps of traces")
      ->type_name("MS")
      ->check(number_range_validator(-kMaxTraceOffset_ms, kMaxTraceOffset_ms));
  verb.add_option("--start", flags->start_ns, "start time of a trace that does not contain it")
      ->type_name("UNIX_NS")
      ->check(whole_number_validator(0, 9'000'000'000'000'000'000));
  verb.add_option("--utc-offset", flags->utc_offset,
                  "UTC offset of nvidia-smi timestamps, +HH:MM; default: local time zone")
      ->type_name("OFFSET");
  verb.add_option("--epochs", flags->epoch_log_pattern,
                  "file of epoch end times (epoch;accuracy;...;timestamp), or a name pattern as in --pattern")
      ->type_name("FILE");
  verb.add_option(
          "--pattern", flags->file_name_pattern,
          "names of files that contain the factors: 'run{run}-{framework}-{model}.csv'; {run} is the repetition, "
          "{framework:torch|jax} matches only these values")
      ->type_name("NAME");
  verb.add_option(
          "-o,--output", flags->output_file,
          "write the recording to FILE; default: run.joule; an existing one becomes FILE.old; or an experiment to "
          "a new folder")
      ->type_name("FILE");
  verb.add_flag("--json", flags->as_json, "one line of JSON on stdout (schema joulemap.import/1)");
  verb.callback([flags, &line] { line.exit_code = run_import(*flags, line); });
}

}  // namespace joulemap::cli

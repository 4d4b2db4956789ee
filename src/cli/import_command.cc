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
constexpr std::string_view kNvidiaSmi = "nvidia-smi";
constexpr std::string_view kPowerCsv = "csv";
constexpr std::size_t kMaxModules = std::size_t{64} << 20;
constexpr double kMaxOffset_ms = 4e12;  // from 1970 to 2096, so that any two times can be aligned

struct ImportFlags {
  std::string format;  // as the user names it, or detected from the content of the first input
  std::vector<std::string> inputs;
  std::vector<std::string> power;
  std::string modules;
  std::vector<std::string> map;
  double offset_ms = 0;
  std::optional<std::int64_t> start_ns;
  std::string utc_offset;
  std::string epochs;
  std::string pattern;
  std::string output{kDefaultRecording};
  bool json = false;
};

Error usage(std::string message, std::string remedy) {
  return {ErrorCode::usage, std::move(message), std::move(remedy)};
}

// Parses --map: "0=gpu1" maps GPU 0 of all traces to domain gpu1, "2:0=gpu1" only of the third input.
Status add_mapping(std::string_view text, ingest::ImportOptions& options) {
  const Error wrong =
      usage(fmt::format("--map {} is not of the form N=GPU", joulemap::quoted(text)), "--map 0=gpu1, or INPUT:0=gpu1");
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals + 1 == text.size()) return wrong;
  std::string_view ordinal = text.substr(0, equals);
  std::optional<std::size_t> input;
  if (const std::size_t colon = ordinal.find(':'); colon != std::string_view::npos) {
    input = parse_u64(ordinal.substr(0, colon));
    if (!input) return wrong;
    ordinal.remove_prefix(colon + 1);
  }
  const std::optional<std::uint64_t> number = parse_u64(ordinal);
  if (!number || *number > UINT32_MAX) return wrong;
  options.gpu_mappings[{input, static_cast<std::uint32_t>(*number)}] = std::string(text.substr(equals + 1));
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

bool is_power_alone(const ImportFlags& flags) { return flags.format == kNvidiaSmi || flags.format == kPowerCsv; }

// --utc-offset in seconds; none if the option is not set.
Result<std::optional<std::int64_t>> utc_offset_of(const ImportFlags& flags) {
  if (flags.utc_offset.empty()) return std::optional<std::int64_t>();
  const std::optional<std::int64_t> utc_offset_s = parse_utc_offset(flags.utc_offset);
  if (utc_offset_s) return utc_offset_s;
  return usage(fmt::format("--utc-offset {} is not a UTC offset", joulemap::quoted(flags.utc_offset)),
               "--utc-offset +01:00");
}

bool makes_experiment(const ImportFlags& flags) {
  return flags.format == kPrengdlFormat || !flags.epochs.empty() || !flags.pattern.empty();
}

Result<ingest::PowerLog> read_power(const ImportFlags& flags) {
  const Result<std::optional<std::int64_t>> utc_offset_s = utc_offset_of(flags);
  if (!utc_offset_s) return utc_offset_s.error();
  std::vector<std::string> files = flags.power;
  if (is_power_alone(flags)) files.insert(files.begin(), flags.inputs.begin(), flags.inputs.end());
  std::vector<ingest::PowerLog> logs;
  for (const std::string& file : files) {
    const Result<ingest::TraceBytes> text = ingest::read_trace_file(file);
    if (!text) return text.error();
    Result<ingest::PowerLog> log = ingest::parse_power_log(text->view(), file, *utc_offset_s);
    if (!log) return std::move(log).error();
    text->report_damage(log->diagnostics);
    logs.push_back(std::move(*log));
  }
  return ingest::join_power_logs(std::move(logs));
}

Result<ingest::ImportOptions> options_of(const ImportFlags& flags) {
  ingest::ImportOptions options;
  options.output_path = flags.output;
  options.command = {"joulemap", "import", flags.format};
  options.command.insert(options.command.end(), flags.inputs.begin(), flags.inputs.end());
  options.command = redacted_arguments(options.command);
  options.offset_ns = std::llround(flags.offset_ms * static_cast<double>(kNanosecondsPerMillisecond));
  options.start_ns = flags.start_ns;
  for (const std::string& mapping : flags.map) {
    if (Status added = add_mapping(mapping, options); !added) return std::move(added).error();
  }
  if (!flags.modules.empty()) {
    const Result<std::string> text = read_file_start(flags.modules, kMaxModules);
    if (!text) return text.error();
    Result<scopes::ModuleNames> names = scopes::parse_module_names(*text);
    if (!names) return std::move(names).error().with_context(flags.modules);
    options.module_names = *std::move(names);
  }
  return options;
}

bool is_format(std::string_view word) {
  return word == kNvidiaSmi || word == kPowerCsv || word == kPrengdlFormat || word == ingest::kCprofileFormat ||
         ingest::find_trace_format(word) != nullptr;
}

std::optional<Error> usage_error(const ImportFlags& flags) {
  if (makes_experiment(flags)) {
    if (flags.format == ingest::kCprofileFormat && (!flags.epochs.empty() || !flags.power.empty())) {
      return usage("profiles of an experiment take neither --epochs nor --power: they have no times",
                   "import one profile with --power, without --pattern");
    }
    const bool is_profile = flags.format == ingest::kCprofileFormat;
    if (is_profile || flags.format == kPrengdlFormat || is_power_alone(flags)) return std::nullopt;
    return usage("--epochs and --pattern need power logs or profiles as input",
                 "joulemap import nvidia-smi POWER.csv --epochs EPOCHS.csv");
  }
  if (is_format(flags.format)) return std::nullopt;
  std::string known;
  for (const ingest::TraceFormat& format : ingest::trace_formats()) known += std::string(format.name) + ", ";
  return usage(fmt::format("unknown import format {}", joulemap::quoted(flags.format)),
               fmt::format("use one of {}cprofile, nvidia-smi, csv, prengdl", known));
}

// Part of the progress that reading a trace takes; assigning its events to scopes is assumed to take as long.
constexpr double kReadingShare = 0.5;

Result<ImportResult> import(const ImportFlags& flags, const CommandLine& line) {
  Result<ingest::ImportOptions> options = options_of(flags);
  if (!options) return std::move(options).error();
  Result<ingest::PowerLog> power = read_power(flags);
  if (!power) return std::move(power).error();
  const ingest::TraceFormat* const format = ingest::find_trace_format(flags.format);
  std::optional<ingest::ImportSession> session;
  const auto begin = [&]() -> Status {
    if (session) return Done{};
    Result<ingest::ImportSession> begun = ingest::ImportSession::begin(std::move(*options), std::move(*power));
    if (!begun) return std::move(begun).error();
    session.emplace(std::move(*begun));
    return Done{};
  };
  const bool is_profile = flags.format == ingest::kCprofileFormat;
  for (std::size_t number = 0; is_profile && number < flags.inputs.size(); ++number) {
    const Result<ingest::FunctionProfile> profile = ingest::read_cprofile(flags.inputs[number]);
    Status added = profile ? begin() : Status(profile.error());
    if (added) added = session->add(*profile, flags.inputs[number]);
    if (added) continue;
    if (session) session->abandon();
    return std::move(added).error();
  }
  const bool inputs_are_steps = format != nullptr && format->read_steps != nullptr;
  const std::size_t traces = format == nullptr ? 0 : inputs_are_steps ? 1 : flags.inputs.size();
  for (std::size_t number = 0; number < traces; ++number) {
    const std::string& input = flags.inputs[number];
    ProgressLine progress("importing " + input, line);
    // The trace is read before begin() creates the recording, so that an unreadable trace leaves no file.
    Result<ingest::Trace> trace = inputs_are_steps
                                      ? format->read_steps(flags.inputs)
                                      : format->read(input, part_of_progress(progress.callback(), 0, kReadingShare));
    report_progress(progress.callback(), kReadingShare);
    Status added = trace ? begin() : Status(std::move(trace).error());
    if (added) added = session->add(std::move(*trace), input);
    if (added) continue;
    if (session) session->abandon();
    return std::move(added).error();
  }
  if (Status begun = begin(); !begun) return std::move(begun).error();
  Result<ImportResult> result = session->finish();
  if (!result) {
    session->abandon();
    return result;
  }
  result->format = flags.format;
  result->inputs = flags.inputs;
  return result;
}

// Inputs that must not be overwritten. Folders count only if the output exists: a new file may be created in them.
std::vector<std::string> inputs_of(const ImportFlags& flags) {
  std::vector<std::string> inputs = flags.power;
  inputs.push_back(flags.modules);
  const bool is_new = !file_exists(flags.output);
  for (const std::string& input : flags.inputs) {
    std::error_code error;
    if (!is_new || !std::filesystem::is_directory(input, error)) inputs.push_back(input);
  }
  return inputs;
}

// In "import trace.json" the first word is an input instead of a format: detects the format from its content.
Status find_format(ImportFlags& flags) {
  std::error_code error;
  if (is_format(flags.format) || !std::filesystem::exists(flags.format, error)) return Done{};
  flags.inputs.insert(flags.inputs.begin(), flags.format);
  Result<std::string> format = ingest::detect_format(flags.inputs.front());
  if (!format) return std::move(format).error();
  flags.format = std::move(*format);
  return Done{};
}

int run_import(ImportFlags flags, const CommandLine& line) {
  if (const Status found = find_format(flags); !found) return print_error(found.error());
  if (flags.inputs.empty() && is_format(flags.format))
    return print_error(usage("import needs an input", "joulemap import trace.json"));
  if (const std::optional<Error> error = usage_error(flags)) return print_error(*error);
  if (makes_experiment(flags)) {
    const Result<std::optional<std::int64_t>> utc_offset_s = utc_offset_of(flags);
    if (!utc_offset_s) return print_error(utc_offset_s.error());
    return run_experiment_import(
        {flags.format, flags.inputs, flags.pattern, flags.epochs, *utc_offset_s, flags.output, flags.json});
  }
  if (const Status distinct = check_not_input(flags.output, inputs_of(flags)); !distinct)
    return print_error(distinct.error());
  const Result<ImportResult> result = import(flags, line);
  if (!result) return print_error(result.error());
  const Status written = flags.json ? write_to(Stream::out, report::import_json(*result) + "\n")
                                    : write_to(Stream::error, report::import_text(*result));
  return written ? kExitSuccess : print_error(written.error());
}

}  // namespace

void add_import_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<ImportFlags>();
  std::string formats;
  for (const ingest::TraceFormat& format : ingest::trace_formats()) {
    formats += fmt::format("  {:<12} {}\n", format.name, format.file_description);
  }
  verb.footer(fmt::format("Formats:\n{}  {:<12} {}\n  {:<12} {}\n  {:<12} {}\n  {:<12} {}", formats,
                          ingest::kCprofileFormat, "Python's cProfile: *.prof, *.pstats; with --pattern an experiment",
                          kNvidiaSmi, "a power log; with --epochs or --pattern an experiment", kPowerCsv,
                          "a power log with the columns time_unix_ns,domain,kind,value", kPrengdlFormat,
                          "the folder of the PrEnGDL measurements, as an experiment"));
  verb.add_option("FORMAT", flags->format, "format of the inputs, see below; default: found by their content")
      ->required();
  verb.add_option("INPUT", flags->inputs,
                  "input files; several files are processes (ranks) of one run, of tensorflow its steps");
  verb.add_option("--power", flags->power,
                  "power log of the same time: CSV time_unix_ns,domain,kind,value, or of nvidia-smi")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  verb.add_option("--modules", flags->modules, "layer paths of the model, written by jm.save_module_names")
      ->type_name("FILE");
  verb.add_option("--map", flags->map, "map GPU 0 of the trace to gpu1: 0=gpu1; of the third input only: 2:0=gpu1")
      ->type_name("N=GPU")
      ->expected(1)
      ->take_all();
  verb.add_option("--offset-ms", flags->offset_ms, "add MS milliseconds to the timestamps of traces")
      ->type_name("MS")
      ->check(number_between(-kMaxOffset_ms, kMaxOffset_ms));
  verb.add_option("--start", flags->start_ns, "start time of a trace that does not contain it")
      ->type_name("UNIX_NS")
      ->check(whole_number(0, 9'000'000'000'000'000'000));
  verb.add_option("--utc-offset", flags->utc_offset,
                  "UTC offset of nvidia-smi timestamps, +HH:MM; default: local time zone")
      ->type_name("OFFSET");
  verb.add_option("--epochs", flags->epochs,
                  "end times of epochs (epoch;accuracy;...;timestamp): a file, or a pattern as in --pattern")
      ->type_name("FILE");
  verb.add_option("--pattern", flags->pattern,
                  "file names with their factors: 'run{run}-{framework}-{model}.csv'; {run} is the repetition, "
                  "{framework:torch|jax} matches only these values")
      ->type_name("NAME");
  verb.add_option(
          "-o,--output", flags->output,
          "write the recording to FILE (run.joule; an existing one becomes FILE.old), or an experiment to a new "
          "folder")
      ->type_name("FILE");
  verb.add_flag("--json", flags->json, "one line of JSON on stdout (schema joulemap.import/1)");
  verb.callback([flags, &line] { line.exit_code = run_import(*flags, line); });
}

}  // namespace joulemap::cli

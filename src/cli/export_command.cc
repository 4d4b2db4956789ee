// SPDX-License-Identifier: Apache-2.0
#include "cli/export_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "attribution/analysis/run_view_builder.h"
#include "cli/attribution_options.h"
#include "cli/output.h"
#include "cli/python_script.h"
#include "cli/tensorboard_log_folder.h"
#include "cli/terminal.h"
#include "cli/value_checks.h"
#include "report/export/exports.h"
#include "report/export/tensorboard_export.h"

namespace joulemap::cli {
namespace {

struct ExportFlags {
  std::vector<std::string> recording_files;
  std::string to;
  std::string by;
  AttributionFlags attribution_options;
  std::string output_file;
};

// Limits high enough that no steps, epochs or metric values are merged or dropped, because programs read exports. Power
// has up to 10 000 slices.
constexpr ViewLimits kExportViewLimits = {.slices = 10'000,
                                          .max_steps_or_epochs = 1U << 30U,
                                          .metric_points = 1U << 30U,
                                          .distributions = 2000,
                                          .layer_points = 2000};

Result<RunView> build_run_view(const ExportFlags& flags, const std::vector<attribution::RowLevel>& levels,
                               DistributionLevel distributions = DistributionLevel::layer) {
  Result<AttributionOptions> attribution_options = parse_attribution_options(flags.attribution_options);
  if (!attribution_options) return std::move(attribution_options).error();
  ViewLimits limits = kExportViewLimits;
  limits.distribution_level = distributions;
  Result<RunView> view = attribution::build_run_view(
      flags.recording_files, {attribution_options->attribution_mode, attribution_options->time_range,
                              std::move(attribution_options->kernel_powers), false, levels, limits,
                              std::move(attribution_options->excluded_domains)});
  if (view) view->run.diagnostics.add_all(attribution_options->diagnostics);
  return view;
}

// Files that the export reads and must not overwrite.
std::vector<std::string> export_input_files(const ExportFlags& flags) {
  std::vector<std::string> inputs = flags.recording_files;
  if (!flags.attribution_options.kernel_library_file.empty())
    inputs.push_back(flags.attribution_options.kernel_library_file);
  return inputs;
}

int export_to_tensorboard(const ExportFlags& flags) {
  if (flags.output_file.empty())
    return print_error({ErrorCode::usage, "export to TensorBoard needs a folder", "-o runs/joules"});
  if (const Status output_check =
          check_output_is_not_input(flags.output_file, add_part_folders(export_input_files(flags)));
      !output_check) {
    return print_error(output_check.error());
  }
  const Result<TensorboardLogFolder> folder = TensorboardLogFolder::open(flags.output_file);
  if (!folder) return print_error(folder.error());
  const Result<RunView> view = build_run_view(flags, {attribution::RowLevel::layer});
  if (!view) return print_error(view.error());
  const Result<RunView> view_by_phase = build_run_view(flags, {attribution::RowLevel::phase}, DistributionLevel::phase);
  if (!view_by_phase) return print_error(view_by_phase.error());
  const auto kind =
      folder->is_shared() ? report::TensorboardFolderSharing::shared : report::TensorboardFolderSharing::exclusive;
  const std::string host = view->run.hosts.empty() ? "" : view->run.hosts.front();
  const Result<std::string> file =
      folder->add_file(host, report::tensorboard_file(*view, view_by_phase->layer_distributions, kind));
  return file ? kExitSuccess : print_error(file.error());
}

// The levels of rows that the format needs.
std::vector<attribution::RowLevel> exported_levels(const report::ExportFormat& format, const std::string& level_name) {
  using attribution::RowLevel;
  const std::vector<RowLevel> minimal_levels = {
      RowLevel::phase};  // steps, epochs and phases are built only along with a level
  if (format.exported_levels == report::ExportLevels::none) return minimal_levels;
  if (format.exported_levels == report::ExportLevels::all) return attribution::ViewQuery{}.levels;
  const std::optional<RowLevel> level = attribution::parse_row_level(level_name);
  if (level && *level != RowLevel::domain && *level != RowLevel::step && *level != RowLevel::epoch) return {*level};
  if (level_name == "layer-step") return {RowLevel::layer};
  if (!level_name.empty()) return minimal_levels;
  return {RowLevel::layer, RowLevel::function, RowLevel::region, RowLevel::kernel};
}

Status check_terminal_output(const report::ExportFormat& format, const ExportFlags& flags) {
  if (!flags.output_file.empty() || format.is_text || !stdout_is_terminal()) return Done{};
  return Error{ErrorCode::usage, fmt::format("{} is a binary format and is not printed to a terminal", format.name),
               "write it to a file: -o FILE"};
}

int export_to_file(const report::ExportFormat& format, const ExportFlags& flags) {
  if (const Status terminal_check = check_terminal_output(format, flags); !terminal_check)
    return print_error(terminal_check.error());
  Result<CommandOutput> output = CommandOutput::open(flags.output_file, export_input_files(flags));
  if (!output) return print_error(output.error());
  const Result<RunView> view = build_run_view(flags, exported_levels(format, flags.by));
  if (!view) return print_error(view.error());
  const Result<std::string> bytes = format.serialize_view(*view, {flags.by});
  if (!bytes) return print_error(bytes.error());
  const Status write_status = output->write_bytes(*bytes);
  return write_status ? kExitSuccess : print_error(write_status.error());
}

// pyarrow writes the Parquet file. The arguments of the script are the output file, the level and the recordings.
constexpr std::string_view kParquetConverterScript = R"(
import sys
try:
    import joulemap, pyarrow.parquet
except ImportError as error:
    print(f"joulemap: Parquet is written by Python: {error}\njoulemap: -> pip install pyarrow", file=sys.stderr)
    sys.exit(77)
output, by, mode, time, library, exclude, *files = sys.argv[1:]
joulemap.load(*files)  # raises if a file is missing
run = joulemap.Run(files, exclude=exclude.split(",") if exclude else ())
if by == "layer-step":
    run.layer_steps().to_parquet(output)
else:
    run.ledger(by, mode=mode, time=tuple(time.split(",")) if time else None, library=library or None).to_parquet(output)
)";

int export_to_parquet(const ExportFlags& flags, const CommandLine& line) {
  if (flags.output_file.empty())
    return print_error({ErrorCode::usage, "parquet is written to a file", "-o run.parquet"});
  if (const Status output_check =
          check_output_is_not_input(flags.output_file, add_part_folders(export_input_files(flags)));
      !output_check)
    return print_error(output_check.error());
  std::vector<std::string> arguments = {flags.output_file,
                                        flags.by.empty() ? "layer" : flags.by,
                                        flags.attribution_options.attribution_mode,
                                        flags.attribution_options.time_window,
                                        flags.attribution_options.kernel_library_file,
                                        fmt::format("{}", fmt::join(flags.attribution_options.excluded_domains, ","))};
  arguments.insert(arguments.end(), flags.recording_files.begin(), flags.recording_files.end());
  return print_error(exec_python_script(line, kParquetConverterScript, arguments));
}

// Tables that only CSV and Parquet contain: their rows are no stacks.
constexpr std::array<std::string_view, 5> kTableOnlyLevels = {"domain", "step", "epoch", "layer-step", "power"};

Status check_level_applies(const ExportFlags& flags) {
  if (flags.by.empty() || flags.to == "csv" || flags.to == "parquet") return Done{};
  const report::ExportFormat* const format = report::find_export_format(flags.to);
  if (format == nullptr || format->exported_levels != report::ExportLevels::requested)
    return Error{ErrorCode::usage, fmt::format("{} has no levels to choose: --by does not apply", flags.to),
                 "leave out --by"};
  if (std::ranges::find(kTableOnlyLevels, flags.by) == kTableOnlyLevels.end()) return Done{};
  return Error{ErrorCode::usage, fmt::format("{} contains stacks, and --by {} has none", flags.to, flags.by),
               fmt::format("joulemap export --to csv --by {}", flags.by)};
}

int run_export(const ExportFlags& flags, const CommandLine& line) {
  if (const Status level_check = check_level_applies(flags); !level_check) return print_error(level_check.error());
  if (flags.to == "tensorboard") return export_to_tensorboard(flags);
  if (const report::ExportFormat* const format = report::find_export_format(flags.to))
    return export_to_file(*format, flags);
  return export_to_parquet(flags, line);
}

}  // namespace

void add_export_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<ExportFlags>();
  std::vector<std::string> names = {"tensorboard", "parquet"};
  std::string help = "tensorboard (-o is a folder, for example the log folder of the run), parquet (needs pyarrow)";
  for (const report::ExportFormat& format : report::export_formats()) {
    names.emplace_back(format.name);
    help += fmt::format(", {} ({})", format.name, format.summary);
  }
  verb.add_option("FILE", flags->recording_files, "recordings; several parts of one run are merged")->required();
  verb.add_option("--to", flags->to, help)->type_name("FORMAT")->required()->check(word_choice_validator(names));
  verb.add_option(
          "--by", flags->by,
          "level of stacks and tables: layer (the default), module (layers with all passes together), phase, op, "
          "tensor, function, region, kernel, stack; for csv also domain, step, epoch, layer-step, power; of a serving "
          "engine: request, token")
      ->type_name("LEVEL")
      ->check(word_choice_validator({"layer", "module", "phase", "op", "tensor", "function", "region", "kernel",
                                     "stack", "domain", "step", "epoch", "layer-step", "power", "request", "token"}));
  add_attribution_flags(verb, flags->attribution_options);
  verb.add_option("-o,--output", flags->output_file, "write to FILE or to a folder")->type_name("FILE");
  verb.callback([flags, &line] { line.exit_code = run_export(*flags, line); });
}

}  // namespace joulemap::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/analyze_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "cli/analyze_plot.h"
#include "cli/output.h"
#include "cli/plot_file.h"
#include "cli/terminal.h"
#include "cli/value_checks.h"
#include "experiment/analysis/analyze.h"
#include "experiment/run/experiment_folder.h"
#include "page/analysis_page.h"
#include "report/export/experiment_rows.h"
#include "report/json/analysis_json.h"
#include "report/text/analysis_summary.h"
#include "report/text/analysis_tables.h"
#include "report/text/analysis_text.h"
#include "report/text/epoch_tables.h"
#include "report/text/function_tables.h"

namespace joulemap::cli {
namespace {

constexpr std::uint64_t kMaxResamples = 10'000'000;
constexpr std::uint64_t kMaxThreadCount = 4096;
constexpr std::ptrdiff_t kMaxScreenLines = 50;
constexpr std::size_t kMaxFunctionsPerCell = 20;  // of a cell and device, with --functions

struct AnalyzeFlags {
  std::string experiment_folder;
  std::string p_adjustment_method = "holm";
  std::optional<double> significance_level;
  std::vector<std::string> compared_factors;
  std::vector<std::string> metric_names;
  std::size_t resamples = experiment::AnalysisOptions{}.resample_count;
  unsigned thread_count = 0;
  bool shows_full_analysis = false;
  bool as_json = false;
  bool as_markdown = false;
  bool as_latex = false;
  bool as_csv = false;
  bool as_cells_csv = false;
  bool as_effects_csv = false;
  bool as_rows_csv = false;
  bool as_functions_csv = false;
  bool as_epochs_csv = false;
  bool shows_functions = false;
  std::string plot_name;
  std::vector<std::string> plotted_cells;
  std::string html_file;
  std::string output_file;
};

Result<experiment::AnalysisOptions> parse_analysis_options(const AnalyzeFlags& flags) {
  experiment::AnalysisOptions options;
  const std::optional<statistics::Adjustment> adjustment = statistics::parse_adjustment(flags.p_adjustment_method);
  if (!adjustment) {
    return Error{ErrorCode::usage,
                 fmt::format("unknown value {} for --adjust", joulemap::quoted(flags.p_adjustment_method)),
                 "use holm, bonferroni, bh or none"};
  }
  options.adjustment = *adjustment;
  options.significance_level = flags.significance_level;
  options.compared_factors = flags.compared_factors;
  options.measure_names = flags.metric_names;
  options.resample_count = flags.resamples;
  options.thread_count = flags.thread_count;
  return options;
}

std::string format_analysis(const AnalysisResult& result, const ExperimentData& data, const AnalyzeFlags& flags,
                            const CommandLine& line) {
  if (flags.as_json) return report::analysis_json(result) + "\n";
  if (flags.as_markdown) return report::analysis_markdown(result);
  if (flags.as_latex) return report::analysis_latex(result);
  if (flags.as_cells_csv) return csv_table(report::full_precision_cells_table(result));
  if (flags.as_effects_csv) return csv_table(report::full_precision_effects_table(result));
  if (flags.as_rows_csv) return csv_table(report::full_precision_rows_table(data, result));
  if (flags.as_functions_csv) return csv_table(report::full_precision_functions_table(result));
  if (flags.as_epochs_csv) return csv_table(report::full_precision_epochs_table(result));
  if (flags.shows_functions) {
    const std::string text = report::functions_text(result, style_of_stdout(line.colour), kMaxFunctionsPerCell);
    return text.empty() ? "No row has functions: record it with a trace, or import profiles.\n" : text.substr(1);
  }
  if (flags.as_csv) return csv_table(report::full_precision_comparisons_table(result));
  return report::analysis_text(result, style_of_stdout(line.colour));
}

bool fits_on_screen(std::string_view text) { return std::ranges::count(text, '\n') <= kMaxScreenLines; }

// Writes the complete text, tables and page to the folder `analysis` of the experiment. Returns its path.
Result<std::string> write_analysis_files(const AnalysisResult& result, const ExperimentData& data,
                                         const AnalyzeFlags& flags) {
  const std::string folder = flags.experiment_folder + "/analysis";
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (error) return Error{ErrorCode::io, fmt::format("cannot create {}: {}", folder, error.message()), ""};
  const std::vector<std::pair<std::string, std::string>> files = {
      {"analysis.txt", report::analysis_text(result, {})},
      {"comparisons.csv", csv_table(report::full_precision_comparisons_table(result))},
      {"effects.csv", csv_table(report::full_precision_effects_table(result))},
      {"cells.csv", csv_table(report::full_precision_cells_table(result))},
      {"epochs.csv", csv_table(report::full_precision_epochs_table(result))},
      {"rows.csv", csv_table(report::full_precision_rows_table(data, result))},
      {"analysis.html", page::analysis_html(result, data)}};
  for (const auto& [name, content] : files) {
    if (Status write_status = write_to_file_or_stdout(fmt::format("{}/{}", folder, name), content, {}); !write_status)
      return std::move(write_status).error();
  }
  return folder;
}

// Prints the whole text if it fits a screen or --full is set, else a summary; then it writes the details to files.
int print_analysis_or_summary(const AnalysisResult& result, const ExperimentData& data, const AnalyzeFlags& flags,
                              const CommandLine& line, CommandOutput& output) {
  std::string text = format_analysis(result, data, flags, line);
  if (!flags.shows_full_analysis && !fits_on_screen(text)) {
    text = report::analysis_summary(result, style_of_stdout(line.colour));
    const Result<std::string> folder = write_analysis_files(result, data, flags);
    text += folder
                ? fmt::format("\nAll cells, comparisons and methods: {}/analysis.html, analysis.txt, *.csv\n", *folder)
                : fmt::format("\nDetails could not be written ({}): see --full or -o FILE\n", folder.error().message);
  }
  const Status write_status = output.write(text);
  return write_status ? kExitSuccess : print_error(write_status.error());
}

int write_analysis_plot(const AnalyzeFlags& flags, const experiment::AnalysisOptions& options) {
  Result<PlotFile> file = PlotFile::open(flags.output_file, experiment::list_experiment_files(flags.experiment_folder));
  if (!file) return print_error(file.error());
  const Result<ExperimentData> data = experiment::read_experiment(flags.experiment_folder);
  if (!data) return print_error(data.error());
  const Result<AnalysisResult> result = experiment::analyze(*data, options);
  if (!result) return print_error(result.error());
  const Result<std::string> svg = analysis_plot_svg(flags.plot_name, *data, *result, flags.plotted_cells);
  if (!svg) return print_error(svg.error());
  const Status write_status = file->write(*svg);
  return write_status ? kExitSuccess : print_error(write_status.error());
}

int run_analyze(const AnalyzeFlags& flags, const CommandLine& line) {
  const int formats = int{flags.as_json} + int{flags.as_markdown} + int{flags.as_latex} + int{flags.as_csv} +
                      int{flags.as_cells_csv} + int{flags.as_effects_csv} + int{flags.as_rows_csv} +
                      int{flags.as_functions_csv} + int{flags.shows_functions} + int{flags.as_epochs_csv};
  if (!flags.plotted_cells.empty() && flags.plot_name != "timeline")
    return print_error({ErrorCode::usage, "--cell needs --plot timeline", ""});
  if (formats > 1 || (!flags.plot_name.empty() && formats + int{!flags.html_file.empty()} > 0)) {
    return print_error({ErrorCode::usage,
                        "--json, --markdown, --latex, --functions, --plot and the --csv options exclude each other",
                        "choose one"});
  }
  const Result<experiment::AnalysisOptions> options = parse_analysis_options(flags);
  if (!options) return print_error(options.error());
  if (!flags.plot_name.empty()) return write_analysis_plot(flags, *options);
  const std::vector<std::string> inputs = experiment::list_experiment_files(flags.experiment_folder);
  Result<CommandOutput> html = CommandOutput::open(flags.html_file, inputs);
  if (!html) return print_error(html.error());
  Result<CommandOutput> output = CommandOutput::open(flags.output_file, inputs);
  if (!output) return print_error(output.error());
  const Result<ExperimentData> data = experiment::read_experiment(flags.experiment_folder);
  if (!data) return print_error(data.error());
  const Result<AnalysisResult> result = experiment::analyze(*data, *options);
  if (!result) return print_error(result.error());
  if (!flags.html_file.empty()) {
    const Status page = html->write(page::analysis_html(*result, *data));
    if (!page) return print_error(page.error());
    if (formats == 0 && flags.output_file.empty()) return kExitSuccess;
  }
  if (formats == 0 && flags.output_file.empty()) return print_analysis_or_summary(*result, *data, flags, line, *output);
  const Status write_status = output->write(format_analysis(*result, *data, flags, line));
  return write_status ? kExitSuccess : print_error(write_status.error());
}

}  // namespace

void add_analyze_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<AnalyzeFlags>();
  verb.add_option("EXPERIMENT", flags->experiment_folder, "experiment folder")->required();
  verb.add_option("--adjust", flags->p_adjustment_method,
                  "correction for multiple comparisons: holm (the default), bonferroni, bh, none")
      ->type_name("HOW");
  verb.add_option("--alpha", flags->significance_level, "significance level; default: alpha of experiment.toml")
      ->type_name("P")
      ->check(number_range_validator(1e-9, 0.5));
  verb.add_option("--factor", flags->compared_factors,
                  "compare the levels of this factor; default: the factors that experiment.toml compares")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  verb.add_option("--metric", flags->metric_names,
                  "only these metrics: energy_j, time_s, package, dram, gpu, or the name of a metric")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  verb.add_option("--resamples", flags->resamples, "number of bootstrap resamples; default: 2000")
      ->type_name("N")
      ->check(whole_number_validator(1, kMaxResamples));
  verb.add_option("--threads", flags->thread_count, "number of threads; default: all CPUs; does not change results")
      ->type_name("N")
      ->check(whole_number_validator(0, kMaxThreadCount));
  verb.add_flag("--full", flags->shows_full_analysis,
                "print everything; default: a summary if the output does not fit on the screen");
  verb.add_flag("--json", flags->as_json, "one line of JSON (schema joulemap.analysis/1)");
  verb.add_flag("--markdown", flags->as_markdown, "print tables, verdicts and methods as Markdown");
  verb.add_flag("--latex", flags->as_latex, "the same as LaTeX");
  verb.add_flag("--csv", flags->as_csv, "comparisons as CSV, full precision");
  verb.add_flag("--csv-cells", flags->as_cells_csv, "cells as CSV, full precision");
  verb.add_flag("--csv-effects", flags->as_effects_csv,
                "effects over all combinations and interactions as CSV, full precision");
  verb.add_flag("--csv-rows", flags->as_rows_csv, "rows with their metrics and flags as CSV, full precision");
  verb.add_flag("--csv-functions", flags->as_functions_csv,
                "functions of cells and what limits them as CSV, full precision");
  verb.add_flag("--csv-epochs", flags->as_epochs_csv,
                "epochs of cells as CSV, full precision: energy, power, temperature, utilization, memory, metrics");
  verb.add_flag("--functions", flags->shows_functions,
                "print only the functions of each cell: calls, own and cumulative time, energy, cause");
  verb.add_option("--plot", flags->plot_name,
                  "write a plot instead: timeline (one run over time), tradeoff (a metric against energy), bars, "
                  "violins, bubbles, epochs; to -o FILE.svg, .png or .pdf")
      ->type_name("PLOT")
      ->check(word_choice_validator(analysis_plot_names()));
  verb.add_option("--cell", flags->plotted_cells,
                  "with --plot timeline: show this cell, FACTOR=LEVEL,...; repeat for others; default: the first two")
      ->type_name("CELL")
      ->expected(1)
      ->take_all();
  verb.add_option("--html", flags->html_file, "write a self-contained HTML page with plots and tables to FILE")
      ->type_name("FILE");
  verb.add_option("-o,--output", flags->output_file, "write to FILE instead of stdout")->type_name("FILE");
  verb.callback([flags, &line] { line.exit_code = run_analyze(*flags, line); });
}

}  // namespace joulemap::cli

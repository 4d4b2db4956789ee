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
constexpr std::uint64_t kMaxThreads = 4096;
constexpr std::ptrdiff_t kScreenLines = 50;
constexpr std::size_t kMaxFunctions = 20;  // of a cell and device, with --functions

struct AnalyzeFlags {
  std::string folder;
  std::string adjust = "holm";
  std::optional<double> alpha;
  std::vector<std::string> factors;
  std::vector<std::string> metrics;
  std::size_t resamples = experiment::AnalysisOptions{}.resamples;
  unsigned threads = 0;
  bool full = false;
  bool json = false;
  bool markdown = false;
  bool latex = false;
  bool csv = false;
  bool csv_cells = false;
  bool csv_effects = false;
  bool csv_rows = false;
  bool csv_functions = false;
  bool csv_epochs = false;
  bool functions = false;
  std::string plot;
  std::vector<std::string> cells;
  std::string html;
  std::string output;
};

Result<experiment::AnalysisOptions> options_of(const AnalyzeFlags& flags) {
  experiment::AnalysisOptions options;
  const std::optional<statistics::Adjustment> adjustment = statistics::parse_adjustment(flags.adjust);
  if (!adjustment) {
    return Error{ErrorCode::usage, fmt::format("unknown value {} for --adjust", joulemap::quoted(flags.adjust)),
                 "use holm, bonferroni, bh or none"};
  }
  options.adjustment = *adjustment;
  options.alpha = flags.alpha;
  options.factors = flags.factors;
  options.measures = flags.metrics;
  options.resamples = flags.resamples;
  options.threads = flags.threads;
  return options;
}

std::string text_of(const AnalysisResult& result, const ExperimentData& data, const AnalyzeFlags& flags,
                    const CommandLine& line) {
  if (flags.json) return report::analysis_json(result) + "\n";
  if (flags.markdown) return report::analysis_markdown(result);
  if (flags.latex) return report::analysis_latex(result);
  if (flags.csv_cells) return csv_table(report::full_precision_cells_table(result));
  if (flags.csv_effects) return csv_table(report::full_precision_effects_table(result));
  if (flags.csv_rows) return csv_table(report::full_precision_rows_table(data, result));
  if (flags.csv_functions) return csv_table(report::full_precision_functions_table(result));
  if (flags.csv_epochs) return csv_table(report::full_precision_epochs_table(result));
  if (flags.functions) {
    const std::string text = report::functions_text(result, style_of_stdout(line.colour), kMaxFunctions);
    return text.empty() ? "No row has functions: record it with a trace, or import profiles.\n" : text.substr(1);
  }
  if (flags.csv) return csv_table(report::full_precision_comparisons_table(result));
  return report::analysis_text(result, style_of_stdout(line.colour));
}

bool fits_a_screen(std::string_view text) { return std::ranges::count(text, '\n') <= kScreenLines; }

// Writes the complete text, tables and page to the folder `analysis` of the experiment. Returns its path.
Result<std::string> write_details(const AnalysisResult& result, const ExperimentData& data, const AnalyzeFlags& flags) {
  const std::string folder = flags.folder + "/analysis";
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
    if (Status written = write_to_file_or_stdout(fmt::format("{}/{}", folder, name), content, {}); !written)
      return std::move(written).error();
  }
  return folder;
}

// Prints the whole text if it fits a screen or --full is set, else a summary; then it writes the details to files.
int print_on_a_screen(const AnalysisResult& result, const ExperimentData& data, const AnalyzeFlags& flags,
                      const CommandLine& line, Output& output) {
  std::string text = text_of(result, data, flags, line);
  if (!flags.full && !fits_a_screen(text)) {
    text = report::analysis_summary(result, style_of_stdout(line.colour));
    const Result<std::string> folder = write_details(result, data, flags);
    text += folder
                ? fmt::format("\nAll cells, comparisons and methods: {}/analysis.html, analysis.txt, *.csv\n", *folder)
                : fmt::format("\nDetails could not be written ({}): see --full or -o FILE\n", folder.error().message);
  }
  const Status written = output.write(text);
  return written ? kExitSuccess : print_error(written.error());
}

int run_plot(const AnalyzeFlags& flags, const experiment::AnalysisOptions& options) {
  Result<PlotFile> file = PlotFile::open(flags.output, experiment::experiment_files(flags.folder));
  if (!file) return print_error(file.error());
  const Result<ExperimentData> data = experiment::read_experiment(flags.folder);
  if (!data) return print_error(data.error());
  const Result<AnalysisResult> result = experiment::analyze(*data, options);
  if (!result) return print_error(result.error());
  const Result<std::string> svg = analysis_plot_svg(flags.plot, *data, *result, flags.cells);
  if (!svg) return print_error(svg.error());
  const Status written = file->write(*svg);
  return written ? kExitSuccess : print_error(written.error());
}

int run_analyze(const AnalyzeFlags& flags, const CommandLine& line) {
  const int formats = int{flags.json} + int{flags.markdown} + int{flags.latex} + int{flags.csv} + int{flags.csv_cells} +
                      int{flags.csv_effects} + int{flags.csv_rows} + int{flags.csv_functions} + int{flags.functions} +
                      int{flags.csv_epochs};
  if (!flags.cells.empty() && flags.plot != "timeline")
    return print_error({ErrorCode::usage, "--cell needs --plot timeline", ""});
  if (formats > 1 || (!flags.plot.empty() && formats + int{!flags.html.empty()} > 0)) {
    return print_error({ErrorCode::usage,
                        "--json, --markdown, --latex, --functions, --plot and the --csv options exclude each other",
                        "choose one"});
  }
  const Result<experiment::AnalysisOptions> options = options_of(flags);
  if (!options) return print_error(options.error());
  if (!flags.plot.empty()) return run_plot(flags, *options);
  const std::vector<std::string> inputs = experiment::experiment_files(flags.folder);
  Result<Output> html = Output::open(flags.html, inputs);
  if (!html) return print_error(html.error());
  Result<Output> output = Output::open(flags.output, inputs);
  if (!output) return print_error(output.error());
  const Result<ExperimentData> data = experiment::read_experiment(flags.folder);
  if (!data) return print_error(data.error());
  const Result<AnalysisResult> result = experiment::analyze(*data, *options);
  if (!result) return print_error(result.error());
  if (!flags.html.empty()) {
    const Status page = html->write(page::analysis_html(*result, *data));
    if (!page) return print_error(page.error());
    if (formats == 0 && flags.output.empty()) return kExitSuccess;
  }
  if (formats == 0 && flags.output.empty()) return print_on_a_screen(*result, *data, flags, line, *output);
  const Status written = output->write(text_of(*result, *data, flags, line));
  return written ? kExitSuccess : print_error(written.error());
}

}  // namespace

void add_analyze_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<AnalyzeFlags>();
  verb.add_option("EXPERIMENT", flags->folder, "experiment folder")->required();
  verb.add_option("--adjust", flags->adjust,
                  "correction for multiple comparisons: holm (default), bonferroni, bh, none")
      ->type_name("HOW");
  verb.add_option("--alpha", flags->alpha, "significance level; default: alpha of experiment.toml")
      ->type_name("P")
      ->check(number_between(1e-9, 0.5));
  verb.add_option("--factor", flags->factors,
                  "compare the levels of this factor; default: the factors that experiment.toml compares")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  verb.add_option("--metric", flags->metrics,
                  "only these metrics: energy_j, time_s, package, dram, gpu, or the name of a metric")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  verb.add_option("--resamples", flags->resamples, "number of bootstrap resamples")
      ->type_name("N")
      ->check(whole_number(1, kMaxResamples));
  verb.add_option("--threads", flags->threads, "number of threads; default: all CPUs; does not change results")
      ->type_name("N")
      ->check(whole_number(0, kMaxThreads));
  verb.add_flag("--full", flags->full, "print everything; default: a summary if it does not fit a screen");
  verb.add_flag("--json", flags->json, "one line of JSON (schema joulemap.analysis/1)");
  verb.add_flag("--markdown", flags->markdown, "tables, verdicts and methods as Markdown");
  verb.add_flag("--latex", flags->latex, "the same as LaTeX");
  verb.add_flag("--csv", flags->csv, "comparisons as CSV, full precision");
  verb.add_flag("--csv-cells", flags->csv_cells, "cells as CSV, full precision");
  verb.add_flag("--csv-effects", flags->csv_effects,
                "effects over all combinations and interactions as CSV, full precision");
  verb.add_flag("--csv-rows", flags->csv_rows, "rows with their metrics and flags as CSV, full precision");
  verb.add_flag("--csv-functions", flags->csv_functions, "functions of cells with their causes as CSV, full precision");
  verb.add_flag("--csv-epochs", flags->csv_epochs,
                "epochs of cells as CSV, full precision: energy, power, temperature, utilisation, memory, metrics");
  verb.add_flag("--functions", flags->functions,
                "print only the functions of each cell: calls, own and cumulative time, energy, cause");
  verb.add_option("--plot", flags->plot,
                  "write a plot instead: timeline (one run over time), tradeoff (a metric against energy), bars, "
                  "violins, bubbles, epochs; to -o FILE.svg, .png or .pdf")
      ->type_name("PLOT")
      ->check(CLI::IsMember(analysis_plot_names()));
  verb.add_option("--cell", flags->cells,
                  "with --plot timeline: show this cell, FACTOR=LEVEL,...; repeat for others; default: the first two")
      ->type_name("CELL")
      ->expected(1)
      ->take_all();
  verb.add_option("--html", flags->html, "write a self-contained HTML page with plots and tables to FILE")
      ->type_name("FILE");
  verb.add_option("-o,--output", flags->output, "write to FILE instead of stdout")->type_name("FILE");
  verb.callback([flags, &line] { line.exit_code = run_analyze(*flags, line); });
}

}  // namespace joulemap::cli

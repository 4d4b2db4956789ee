// SPDX-License-Identifier: Apache-2.0
#include "cli/report_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <memory>

#include "account/account.h"
#include "attribution/analysis/report_builder.h"
#include "attribution/analysis/run_view_builder.h"
#include "base/text.h"
#include "cli/account_options.h"
#include "cli/attribution_options.h"
#include "cli/model_file.h"
#include "cli/output.h"
#include "cli/page_file.h"
#include "cli/plot_file.h"
#include "cli/terminal.h"
#include "cli/value_checks.h"
#include "report/disclosure/disclosure.h"
#include "report/export/citation.h"
#include "report/export/tables.h"
#include "report/json/report_json.h"
#include "report/plot/plots.h"
#include "report/text/report_text.h"

namespace joulemap::cli {
namespace {

constexpr std::size_t kMaxPlottedLayers = 2000;
constexpr std::size_t kMaxPointsPerLine = 2000;  // about twice the width of a plot in pixels

struct ReportFlags {
  std::vector<std::string> recording_files;
  std::string by;  // default: layers, or domains if there are none
  AttributionFlags attribution_options;
  std::optional<std::size_t> max_depth;
  std::optional<std::size_t> shown_row_count;
  std::optional<report::SortBy> sort_column;
  std::string name_filter;
  bool as_json = false;
  std::string plot_name;
  std::optional<std::size_t> smoothing_window;
  std::string html_file;
  std::string table_format = "text";
  bool cites_joulemap = false;
  std::string disclosure_format;  // name of a format; empty: none
  bool prints_model_card = false;
  report::DisclosureOptions disclosure;
  std::string disclosure_base_file;
  AccountFlags account_flags;
  std::string output_file;
  bool is_strict = false;
};

// The disclosure of --disclose. Required members that are unknown are listed on stderr.
Result<std::string> make_disclosure(const ReportResult& result, const ReportFlags& flags) {
  report::DisclosureOptions options = flags.disclosure;
  options.created_unix_s = std::time(nullptr);
  if (!flags.disclosure_base_file.empty()) {
    Result<std::string> text = read_plain_or_gzip_file(flags.disclosure_base_file);
    if (!text) return text;
    options.base_file = flags.disclosure_base_file;
    options.base_json = std::move(*text);
  }
  Result<report::Disclosure> disclosure =
      report::find_disclosure_format(flags.disclosure_format)->write_disclosure(result, options, JOULEMAP_VERSION);
  if (!disclosure) return std::move(disclosure).error();
  if (!disclosure->missing_members.empty()) {
    const Status warning_status = write_to_stream(
        StandardStream::error,
        fmt::format("joulemap: incomplete: {} also requires {}\njoulemap: -> add them with --into FILE\n",
                    flags.disclosure_format, fmt::join(disclosure->missing_members, ", ")));
    if (!warning_status) return warning_status.error();
  }
  return std::move(disclosure->text);
}

Result<std::string> format_report(const ReportResult& result, const ReportFlags& flags, const CommandLine& line) {
  if (flags.as_json) return report::report_json(result, flags.disclosure.account) + "\n";
  if (flags.cites_joulemap)
    return report::citation_text(result, flags.disclosure.hardware_description, JOULEMAP_VERSION);
  if (!flags.disclosure_format.empty()) return make_disclosure(result, flags);
  const report::TreeQuery rows{flags.sort_column, flags.name_filter};
  if (flags.table_format == "markdown")
    return report::format_report_table(result, report::TableFormat::markdown, {rows, flags.shown_row_count});
  if (flags.table_format == "latex")
    return report::format_report_table(result, report::TableFormat::latex, {rows, flags.shown_row_count});
  if (flags.table_format == "csv")
    return report::format_report_table(result, report::TableFormat::csv, {rows, flags.shown_row_count});
  report::TextStyle style = style_of_stdout(line.colour);
  if (!flags.output_file.empty()) style.colour = false;
  return report::report_text(result, {rows, flags.max_depth, flags.shown_row_count}, style, flags.disclosure.account);
}

// Files that the report reads and must not overwrite.
std::vector<std::string> report_input_files(const ReportFlags& flags) {
  std::vector<std::string> inputs = flags.recording_files;
  for (const std::string& file : {flags.attribution_options.kernel_library_file, flags.account_flags.carbon_data_file,
                                  flags.disclosure_base_file}) {
    if (!file.empty()) inputs.push_back(file);
  }
  return inputs;
}

int write_report_plot(const ReportFlags& flags) {
  const report::PlotQuery query{
      .plot = report::find_plot(flags.plot_name).value_or(report::PlotKind::timeline),
      .by = flags.by,
      .name_filter = flags.name_filter,
      .max_items = flags.shown_row_count,
      .smoothing_window = flags.smoothing_window,
      .sort_by = flags.sort_column,
  };
  if (const Status query_check = report::validate_plot_query(query); !query_check)
    return print_error(query_check.error());
  Result<PlotFile> picture = PlotFile::open(flags.output_file, report_input_files(flags));
  if (!picture) return print_error(picture.error());
  Result<AttributionOptions> attribution_options = parse_attribution_options(flags.attribution_options);
  if (!attribution_options) return print_error(attribution_options.error());
  attribution::ViewQuery view_query{attribution_options->attribution_mode,
                                    attribution_options->time_range,
                                    std::move(attribution_options->kernel_powers),
                                    true,
                                    {}};
  view_query.excluded_domains = std::move(attribution_options->excluded_domains);
  if (query.plot == report::PlotKind::lines) view_query.limits.layer_points = kMaxPointsPerLine;
  if (report::plotted_distribution_level(query) == "phase")
    view_query.limits.distribution_level = DistributionLevel::phase;
  if (!flags.name_filter.empty())
    view_query.limits.distributions = kMaxPlottedLayers;  // layers that match may have little energy
  const std::optional<attribution::RowLevel> level = attribution::parse_row_level(flags.by);
  view_query.levels =
      level ? std::vector{*level} : std::vector{attribution::RowLevel::layer, attribution::RowLevel::kernel};
  Result<RunView> view = attribution::build_run_view(flags.recording_files, view_query);
  if (!view) return print_error(view.error());
  view->run.diagnostics.add_all(attribution_options->diagnostics);
  const Result<std::string> svg = report::plot_svg(*view, query);
  if (!svg) return print_error(svg.error());
  const Status write_status = picture->write(*svg);
  return write_status ? strict_exit_code(kExitSuccess, flags.is_strict, view->run.diagnostics)
                      : print_error(write_status.error());
}

// Fails if more than one of the options is set that select the content of the output.
Status check_at_most_one_output(const ReportFlags& flags) {
  const int output_count = (flags.as_json ? 1 : 0) + (flags.plot_name.empty() ? 0 : 1) +
                           (flags.html_file.empty() ? 0 : 1) + (flags.table_format == "text" ? 0 : 1) +
                           (flags.cites_joulemap ? 1 : 0) + (flags.disclosure_format.empty() ? 0 : 1);
  if (output_count <= 1) return Done{};
  return Error{ErrorCode::usage, "--json, --format, --plot, --html, --cite and --disclose exclude each other",
               "choose one of them"};
}

// Fails if an option is set that the selected output does not use.
Status check_options_of_output(const ReportFlags& flags) {
  const auto make_error = [](std::string_view option, std::string_view requirement) {
    return Error{ErrorCode::usage, fmt::format("{} has no effect without {}", option, requirement),
                 fmt::format("add {}, or remove {}", requirement, option)};
  };
  const std::array<std::pair<std::string_view, bool>, 6> disclosure_options = {
      {{"--model-name", !flags.disclosure.model_name.empty()},
       {"--stage", !flags.disclosure.lifecycle_stage.empty()},
       {"--functional-unit", flags.disclosure.functional_unit != "run"},
       {"--into", !flags.disclosure_base_file.empty()},
       {"--location", !flags.disclosure.compute_location.empty()},
       {"--training-type", !flags.disclosure.training_type.empty()}}};
  for (const auto& [option, is_set] : disclosure_options) {
    if (is_set && flags.disclosure_format.empty()) return make_error(option, "--disclose");
  }
  if (!flags.disclosure.hardware_description.empty() && flags.disclosure_format.empty() && !flags.cites_joulemap)
    return make_error("--hardware", "--disclose, --model-card or --cite");
  if (flags.smoothing_window && flags.plot_name != "lines") return make_error("--smooth", "--plot lines");
  // Options that select rows are accepted: the page contains all levels and rows.
  if (!flags.output_file.empty() && !flags.html_file.empty())
    return Error{ErrorCode::usage, "-o has no effect with --html", "remove one of the two options"};
  return Done{};
}

// Report without --by: by layer. If there are no layers and no idle energy of a GPU to explain, by domain.
Result<ReportResult> build_default_report(const std::vector<std::string>& files, attribution::ReportQuery query) {
  query.level = attribution::RowLevel::layer;
  Result<ReportResult> by_layer = attribution::build_report(files, query);
  const auto is_scope_row = [](const ReportRow& row) { return row.path.size() > 1; };
  const auto is_gpu_idle_entry = [](const IdleEntry& idle) {
    return idle.device.starts_with("gpu") && idle.energy_j > 0;
  };
  if (!by_layer || std::ranges::any_of(by_layer->rows, is_scope_row) ||
      std::ranges::any_of(by_layer->idle, is_gpu_idle_entry))
    return by_layer;
  query.level = attribution::RowLevel::domain;
  return attribution::build_report(files, query);
}

int run_report(ReportFlags flags, const CommandLine& line) {
  Result<std::vector<std::string>> files = recordings_or_default(std::move(flags.recording_files), "report");
  if (!files) return print_error(files.error());
  flags.recording_files = std::move(*files);
  if (flags.prints_model_card) flags.disclosure_format = "huggingface";
  if (const Status output_check = check_at_most_one_output(flags); !output_check)
    return print_error(output_check.error());
  if (const Status option_check = check_options_of_output(flags); !option_check)
    return print_error(option_check.error());
  const Result<CarbonAccountAssumptions> assumptions = parse_account_assumptions(flags.account_flags);
  if (!assumptions) return print_error(assumptions.error());
  if (!flags.plot_name.empty()) return write_report_plot(flags);
  if (!flags.html_file.empty()) {
    const Result<Diagnostics> notes =
        write_page(flags.recording_files, flags.html_file, flags.attribution_options, line);
    if (notes && !line.quiet) {
      if (const Status notice_status =
              write_to_stream(StandardStream::error, fmt::format("joulemap: wrote {}\n", printable(flags.html_file)));
          !notice_status)
        return print_error(notice_status.error());
    }
    return notes ? strict_exit_code(kExitSuccess, flags.is_strict, *notes) : print_error(notes.error());
  }
  Result<CommandOutput> output = CommandOutput::open(flags.output_file, report_input_files(flags));
  if (!output) return print_error(output.error());
  Result<AttributionOptions> attribution_options = parse_attribution_options(flags.attribution_options);
  if (!attribution_options) return print_error(attribution_options.error());
  attribution::ReportQuery query = make_report_query(*attribution_options);
  query.level = attribution::parse_row_level(flags.by).value_or(attribution::RowLevel::domain);
  query.grouping = {!flags.as_json, flags.name_filter};
  Result<ReportResult> result = flags.by.empty() ? build_default_report(flags.recording_files, query)
                                                 : attribution::build_report(flags.recording_files, query);
  if (!result) return print_error(result.error());
  result->diagnostics.add_all(attribution_options->diagnostics);
  if (!assumptions->is_empty()) {
    Result<CarbonAccount> account = account::compute_carbon_account(*result, *assumptions);
    if (!account) return print_error(account.error());
    flags.disclosure.account = std::move(*account);
  }
  const Diagnostics notes = result->diagnostics;
  if (line.quiet && !flags.as_json) result->diagnostics = {};
  const Result<std::string> text = format_report(*result, flags, line);
  if (!text) return print_error(text.error());
  const Status write_status = output->write(*text);
  return write_status ? strict_exit_code(kExitSuccess, flags.is_strict, notes) : print_error(write_status.error());
}

void add_display_flags(CLI::App& verb, ReportFlags& flags) {
  static const std::map<std::string, report::SortBy> kSortOrders = {
      {"energy", report::SortBy::energy}, {"time", report::SortBy::time}, {"power", report::SortBy::power},
      {"count", report::SortBy::count},   {"name", report::SortBy::name}, {"order", report::SortBy::order}};
  verb.add_option("--depth", flags.max_depth, "levels of the tree to expand, starting with the devices")
      ->type_name("N")
      ->check(whole_number_validator());
  verb.add_option("--top", flags.shown_row_count,
                  "at most N lines, largest branches expanded first; default: 30; 0 shows all")
      ->type_name("N")
      ->check(whole_number_validator());
  verb.add_option_function<std::string>(
          "--sort", [&flags](const std::string& word) { flags.sort_column = kSortOrders.at(word); },
          "energy (the default), time, power, count, name or order (of steps)")
      ->type_name("KEY")
      ->check(word_choice_validator({"energy", "time", "power", "count", "name", "order"}).description(""));
  verb.add_option("--filter", flags.name_filter,
                  "only rows whose device and path contain TEXT; 'conv1|fc': either of them")
      ->type_name("TEXT");
}

void add_disclosure_flags(CLI::App& verb, ReportFlags& flags) {
  verb.add_option("--model-name", flags.disclosure.model_name, "name of the model, for --disclose")->type_name("TEXT");
  verb.add_option("--stage", flags.disclosure.lifecycle_stage, "for --disclose: training, fine-tuning or inference")
      ->type_name("STAGE")
      ->check(word_choice_validator({"training", "fine-tuning", "inference"}));
  verb.add_option("--functional-unit", flags.disclosure.functional_unit,
                  "for --disclose sci: run (the default), step, epoch or sample")
      ->type_name("UNIT")
      ->check(word_choice_validator({"run", "step", "epoch", "sample"}));
  verb.add_option("--into", flags.disclosure_base_file,
                  "for --disclose boamps: JSON report to complete; its values are kept")
      ->type_name("FILE");
  verb.add_option("--location", flags.disclosure.compute_location, "location of the run, for --disclose")
      ->type_name("TEXT");
  verb.add_option("--training-type", flags.disclosure.training_type, "pre-training or fine-tuning, for --model-card")
      ->type_name("TEXT");
  verb.add_option("--hardware", flags.disclosure.hardware_description,
                  "hardware of the run, for --model-card and --cite; default: from the recording")
      ->type_name("TEXT");
}

void add_output_format_flags(CLI::App& verb, ReportFlags& flags) {
  verb.add_option("--format", flags.table_format, "format of the rows: text (the default), markdown, latex or csv")
      ->type_name("FORMAT")
      ->check(word_choice_validator({"text", "markdown", "latex", "csv"}));
  verb.add_option("--plot", flags.plot_name,
                  "write a plot instead: timeline, violin, box, lines, bars, loss, flame, heatmap; to -o FILE.svg, "
                  ".png or .pdf")
      ->type_name("PLOT")
      ->check(word_choice_validator({"timeline", "violin", "box", "lines", "bars", "loss", "flame", "heatmap"}));
  verb.add_option("--smooth", flags.smoothing_window,
                  "with --plot lines: moving average over N points; default: 2 % of the run; 1: none")
      ->type_name("N")
      ->check(whole_number_validator(1));
  verb.add_option("--html", flags.html_file, "write a self-contained HTML page with all levels and plots to FILE")
      ->type_name("FILE");
  verb.add_flag("--cite", flags.cites_joulemap, "print a sentence for a paper");
  add_account_flags(verb, flags.account_flags);
  std::vector<std::string> formats;
  for (const report::DisclosureFormat& format : report::disclosure_formats()) formats.emplace_back(format.name);
  CLI::Option* const disclose_option =
      verb.add_option("--disclose", flags.disclosure_format,
                      fmt::format("print a disclosure of the energy instead: {}", fmt::join(formats, ", ")))
          ->type_name("FORMAT")
          ->check(word_choice_validator(formats));
  verb.add_flag("--model-card", flags.prints_model_card, "short for --disclose huggingface")->excludes(disclose_option);
  add_disclosure_flags(verb, flags);
}

}  // namespace

void add_report_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<ReportFlags>();
  verb.add_option("FILE", flags->recording_files,
                  "recordings; default: run.joule; several parts of one run are merged");
  verb.add_option(
          "--by", flags->by,
          "level of rows: layer (the default), module (layers with all passes together), domain, phase, op, tensor, "
          "function, region, kernel, stack (layers and their kernels), step, epoch, rank; of a serving engine: "
          "request, "
          "token (prefill and decode)")
      ->type_name("LEVEL")
      ->check(word_choice_validator({"domain", "phase", "layer", "module", "op", "tensor", "function", "region",
                                     "kernel", "step", "epoch", "rank", "stack", "request", "token"}));
  add_attribution_flags(verb, flags->attribution_options);
  add_display_flags(verb, *flags);
  verb.add_flag("--json", flags->as_json, "one line of JSON (schema joulemap.report/1)");
  add_output_format_flags(verb, *flags);
  verb.add_option("-o,--output", flags->output_file, "write to FILE")->type_name("FILE");
  add_strict_flag(verb, flags->is_strict);
  verb.callback([flags, &line] { line.exit_code = run_report(*flags, line); });
}

}  // namespace joulemap::cli

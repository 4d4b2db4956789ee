// SPDX-License-Identifier: Apache-2.0
#include "page/analysis_page.h"

#include <fmt/format.h>

#include "page/page_html.h"
#include "page/static_page.h"
#include "report/plot/experiment_plots.h"
#include "report/text/analysis_tables.h"
#include "report/text/analysis_text.h"
#include "report/text/function_tables.h"

namespace joulemap::page {
namespace {

constexpr std::string_view kPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
constexpr std::size_t kSeries = 12;  // maximum number of cells in the plot of power by epoch

// CSS in addition to that of the static page. Plots have a light background: in dark mode a filter inverts their
// lightness and keeps the hues.
constexpr std::string_view kOwnStyle =
    "td{white-space:normal;max-width:46em}td.n,th.n{text-align:right;white-space:nowrap}tbody "
    "tr:hover{background:#8882}"
    "li{margin:4px 0}code{background:#8883;padding:0 4px;border-radius:3px}"
    "@media (prefers-color-scheme:dark){svg{filter:invert(1) hue-rotate(180deg)}}";

std::string html_table(const report::TextTable& table) {
  std::string out = fmt::format("<table><caption>{}</caption><thead><tr>", escaped_html(table.caption));
  for (std::size_t i = 0; i < table.column_headers.size(); ++i) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>", table.is_number[i] ? " class=\"n\"" : "",
                       escaped_html(table.column_headers[i]));
  }
  out += "</tr></thead><tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += fmt::format("<td{}>{}</td>", table.is_number[i] ? " class=\"n\"" : "", escaped_html(row[i]));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

std::string section(std::string_view id, std::string_view title, const std::string& content) {
  if (content.empty()) return "";
  return fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, escaped_html(title), content);
}

std::string table_section(std::string_view id, std::string_view title, const report::TextTable& table) {
  return table.rows.empty() ? "" : section(id, title, html_table(table));
}

std::string picture(const std::string& svg) {
  const std::size_t begin = svg.find("<svg");  // HTML must not contain an XML declaration
  return begin == std::string::npos ? "" : svg.substr(begin) + "\n";
}

std::string flags_list(const AnalysisResult& result) {
  if (result.flags.empty()) return "<p>No flags.</p>\n";
  std::string list = "<ul>\n";
  for (const AnalysisFlag& flag : result.flags) {
    list += fmt::format("<li><code>{}</code> {}{}</li>\n", escaped_html(flag.code), escaped_html(flag.message),
                        flag.remedy.empty() ? "" : " → " + escaped_html(flag.remedy));
  }
  return list + "</ul>\n";
}

std::string pictures_of(const AnalysisResult& result, const ExperimentData& data) {
  std::string bars;
  std::string violins;
  for (std::size_t i = 0; i < result.measures.size(); ++i) {
    bars += picture(report::cell_bars_svg(result, i));
    const MeasureKind kind = result.measures[i].kind;
    if (kind == MeasureKind::energy || kind == MeasureKind::time)
      violins += picture(report::cell_violins_svg(result, i));
  }
  return section("bars", "By level", bars) +
         section("bubbles", "Energy and time of cells", picture(report::bubbles_svg(result))) +
         section("violins", "Variation between rows", violins) +
         section("epochs", "First and later epochs",
                 picture(report::epoch_power_svg(result)) + picture(report::epoch_series_svg(data, result, kSeries)));
}

}  // namespace

std::string analysis_html(const AnalysisResult& result, const ExperimentData& data) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<title>{} · Joulemap</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n<p>{}</p>\n",
      kPolicy, escaped_html(result.name), static_page_css(), kOwnStyle, escaped_html(result.name),
      escaped_html(report::analysis_headline(result)));
  page += table_section("main-effects", "Effects over all combinations", report::main_effects_table(result));
  page += table_section("interactions", "Interactions", report::interactions_table(result));
  page += section("flags", "Flags of the experiment", flags_list(result));
  page += pictures_of(result, data);
  page += table_section("cells", "Cells", report::cells_table(result));
  page += table_section("verdicts", "Verdicts", report::verdicts_table(result));
  page += table_section("comparisons", "Comparisons", report::comparisons_table(result));
  page += table_section("epoch-table", "Energy of epochs", report::epochs_table(result));
  page += table_section("functions", "Functions", report::functions_table(result));
  page += table_section("pareto", "Pareto front", report::pareto_table(result));
  page += table_section("associations", "Correlation of energy and time", report::associations_table(result));
  page += table_section("correlations", "Correlation by level", report::correlations_table(result));
  page += table_section("cell-flags", "All flags", report::flags_table(result));
  page += section("methods", "Methods", "<p>" + escaped_html(result.methods) + "</p>\n");
  std::string notes;
  for (const Diagnostic& note : result.diagnostics.list()) notes += "<li>" + escaped_html(note.message) + "</li>\n";
  if (!notes.empty()) page += section("notes", "Notes on the data", "<ul>\n" + notes + "</ul>\n");
  return page + "</main>\n</body>\n</html>\n";
}

}  // namespace joulemap::page

// SPDX-License-Identifier: Apache-2.0
#include "page/analysis_page.h"

#include <fmt/format.h>

#include "page/html_sections.h"
#include "page/page_html.h"
#include "report/plot/experiment_plots.h"
#include "report/text/analysis_tables.h"
#include "report/text/analysis_text.h"
#include "report/text/epoch_tables.h"
#include "report/text/function_tables.h"

namespace joulemap::page {
namespace {

constexpr std::size_t kMaxPlottedCells = 12;  // maximum number of cells in the plot of power by epoch

std::string analysis_flags_html(const AnalysisResult& result) {
  if (result.flags.empty()) return "<p>No flags.</p>\n";
  std::string list_html = "<ul>\n";
  for (const AnalysisFlag& flag : result.flags) {
    list_html += fmt::format("<li><code>{}</code> {}{}</li>\n", escape_html(flag.code), escape_html(flag.message),
                             flag.remedy.empty() ? "" : " → " + escape_html(flag.remedy));
  }
  return list_html + "</ul>\n";
}

std::string analysis_plots_html(const AnalysisResult& result, const ExperimentData& data) {
  std::string bars;
  std::string violins;
  for (std::size_t i = 0; i < result.measures.size(); ++i) {
    bars += strip_xml_declaration(report::cell_bars_svg(result, i));
    const MeasureKind kind = result.measures[i].kind;
    if (kind == MeasureKind::energy || kind == MeasureKind::time)
      violins += strip_xml_declaration(report::cell_violins_svg(result, i));
  }
  return html_section("bars", "By level", bars) +
         html_section("bubbles", "Energy and time of cells", strip_xml_declaration(report::bubbles_svg(result))) +
         html_section("tradeoff", "Quality against energy", strip_xml_declaration(report::tradeoff_svg(result))) +
         html_section("violins", "Variation between rows", violins) +
         html_section("epochs", "First and later epochs",
                      strip_xml_declaration(report::epoch_power_svg(result)) +
                          strip_xml_declaration(report::epoch_series_svg(data, result, kMaxPlottedCells)));
}

}  // namespace

std::string analysis_html(const AnalysisResult& result, const ExperimentData& data) {
  std::string page = sections_page_begin(result.name, report::analysis_headline(result));
  page += table_section("main-effects", "Effects over all combinations", report::main_effects_table(result));
  page += table_section("interactions", "Interactions", report::interactions_table(result));
  page += html_section("flags", "Flags of the experiment", analysis_flags_html(result));
  page += analysis_plots_html(result, data);
  page += table_section("cells", "Cells", report::cells_table(result));
  page += table_section("verdicts", "Verdicts", report::verdicts_table(result));
  page += table_section("comparisons", "Comparisons", report::comparisons_table(result));
  page += table_section("epoch-table", "Energy of epochs", report::epochs_table(result));
  page += table_section("each-epoch", "Epochs", report::epoch_means_table(result));
  page += table_section("functions", "Functions", report::functions_table(result));
  page += table_section("pareto", "Pareto front", report::pareto_table(result));
  page += table_section("associations", "Correlation of energy and time", report::associations_table(result));
  page += table_section("correlations", "Correlation by level", report::correlations_table(result));
  page += table_section("cell-flags", "All flags", report::analysis_flags_table(result));
  page += html_section("methods", "Methods", "<p>" + escape_html(result.methods) + "</p>\n");
  std::string notes;
  for (const Diagnostic& note : result.diagnostics.list()) notes += "<li>" + escape_html(note.message) + "</li>\n";
  if (!notes.empty()) page += html_section("notes", "Notes on the data", "<ul>\n" + notes + "</ul>\n");
  return page + std::string(kSectionsPageEnd);
}

}  // namespace joulemap::page

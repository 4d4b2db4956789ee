// SPDX-License-Identifier: Apache-2.0
#include "page/static_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "page/page_html.h"
#include "report/plot/plots.h"
#include "report/text/advice_text.h"
#include "report/text/command_energy.h"
#include "report/text/energy_rows.h"
#include "report/text/run_summary_sentences.h"

namespace joulemap::page {
namespace {

constexpr std::size_t kMaxRowsPerLevel = 40;  // maximum number of rows of each level
constexpr double kMinUnattributedFraction =
    1e-9;  // unattributed energy below this fraction of the total is a rounding error

std::string number_with_unit(const std::optional<double>& value, std::string_view unit) {
  if (!value) return "–";
  return fmt::format("{} {}", report::format_number(*value), unit);
}

std::string static_page_table_row(std::initializer_list<std::string> texts) {
  std::string row = "<tr>";
  bool is_first = true;
  for (const std::string& text : texts) {
    row += is_first ? "<th scope=\"row\">" + text + "</th>" : "<td>" + text + "</td>";
    is_first = false;
  }
  return row + "</tr>\n";
}

std::string static_page_table(std::string_view caption, std::initializer_list<std::string_view> column_headers,
                              const std::string& rows) {
  std::string table = fmt::format("<table><caption>{}</caption><thead><tr>", escape_html(caption));
  for (const std::string_view column_header : column_headers)
    table += fmt::format("<th scope=\"col\">{}</th>", column_header);
  return table + "</tr></thead><tbody>\n" + rows + "</tbody></table>\n";
}

std::string findings_list_html(const std::optional<Advice>& advice) {
  if (!advice || advice->findings.empty()) return {};
  std::string items;
  for (const Finding& finding : advice->findings) {
    items += fmt::format("<li>{}: {}. Try: {}</li>\n", escape_html(finding.title),
                         escape_html(report::finding_saving_text(finding, *advice)), escape_html(finding.change));
  }
  return "<h2>What to change</h2>\n<ol>\n" + items + "</ol>\n";
}

std::string summary_section(const RunView& view) {
  const ReportResult& run = view.run;
  std::string command;
  for (const std::string& part : run.command) command += (command.empty() ? "" : " ") + part;
  std::string rows;
  const auto add = [&](std::string_view name, const std::optional<double>& value, std::string_view unit) {
    if (value) rows += static_page_table_row({std::string(name), number_with_unit(value, unit)});
  };
  add("measured", joules_of(run.totals.measured), "J");
  add("estimated", joules_of(run.totals.estimated), "J");
  add("elapsed", run.elapsed_s, "s");
  const RunRates rates = report::command_rates(view);
  if (report::noticeable_background_j(view) > 0) add("of it by the command", rates.energy_j, "J");
  add("per step", rates.energy_per_unit(rates.steps), "J");
  add("per epoch", rates.energy_per_unit(rates.epochs), "J");
  add("per sample", rates.energy_per_unit(rates.samples), "J");
  add("samples per second", rates.samples_per_s(), "/s");
  add("energy-delay product", rates.energy_delay_js(), "J s");
  add("CPU time of the recorder", run.overhead_cpu_s, "s");
  if (run.probe) add("probing", run.probe->energy_j, "J");
  std::string domains;
  for (const DomainEnergy& domain : run.domains) {
    domains += static_page_table_row({escape_html(domain.name), number_with_unit(domain.joules, "J"),
                                      number_with_unit(domain.uncertainty_j, "J"), number_with_unit(domain.mean_w, "W"),
                                      domain.provenance ? std::string(to_string(*domain.provenance)) : "",
                                      domain.is_counted ? "yes" : "no"});
  }
  std::string answer;
  for (const std::string& sentence : report::run_summary_sentences(view)) answer += escape_html(sentence) + " ";
  return fmt::format("<section id=\"summary\"><h1>{}</h1>\n<p>{}</p>\n{}", escape_html(command), answer,
                     findings_list_html(view.advice)) +
         static_page_table("Summary", {"", ""}, rows) +
         static_page_table("Energy by domain", {"Domain", "Energy", "&#177;", "Mean power", "", "Counted"}, domains) +
         "</section>\n";
}

std::string level_section(const LevelView& level) {
  std::string rows;
  const std::size_t shown_row_count = std::min(level.rows.size(), kMaxRowsPerLevel);
  for (std::size_t i = 0; i < shown_row_count; ++i) {
    const ReportRow& row = level.rows[i];
    std::string path;
    for (const std::string& part : row.path) path += (path.empty() ? "" : " ") + part;
    const std::string name = row.path.size() > 1 ? path : row.display_name;
    const std::string interval = row.low_j && row.high_j ? fmt::format("{} to {} J", report::format_number(*row.low_j),
                                                                       report::format_number(*row.high_j))
                                                         : "–";
    rows += static_page_table_row({escape_html(name), escape_html(row.device), number_with_unit(row.energy_j, "J"),
                                   interval, number_with_unit(row.time_s, "s"),
                                   row.count ? fmt::format("{}", *row.count) : "–", escape_html(row.basis)});
  }
  if (shown_row_count < level.rows.size()) {
    double remaining_energy_j = 0;
    for (std::size_t i = shown_row_count; i < level.rows.size(); ++i)
      remaining_energy_j += level.rows[i].energy_j.value_or(0);
    rows += static_page_table_row({fmt::format("and {} more", level.rows.size() - shown_row_count), "",
                                   number_with_unit(remaining_energy_j, "J"), "", "", "", ""});
  }
  rows += static_page_table_row({"idle", "", number_with_unit(level.idle_j, "J"), "", "", "", ""});
  const double min_unattributed_j = kMinUnattributedFraction * level.attributed_j.value_or(0);
  const bool is_rounding_error = level.unattributed_j && std::abs(*level.unattributed_j) < min_unattributed_j;
  rows += static_page_table_row(
      {"not attributed", "", is_rounding_error ? "0 J" : number_with_unit(level.unattributed_j, "J"), "", "", "", ""});
  return fmt::format("<section id=\"by-{0}\"><h2>By {0}</h2>\n", escape_html(level.by)) +
         static_page_table("Energy by " + level.by, {"Name", "Device", "Energy", "Interval", "Time", "Calls", "Basis"},
                           rows) +
         "</section>\n";
}

std::string notes_section(const RunView& view) {
  Diagnostics diagnostics = view.run.diagnostics;
  for (const LevelView& level : view.levels) {
    for (const Diagnostic& note : level.diagnostics.list()) {
      const auto has_same_message = [&](const Diagnostic& listed_diagnostic) {
        return listed_diagnostic.message == note.message;
      };
      if (std::ranges::none_of(diagnostics.list(), has_same_message)) diagnostics.add(note);
    }
  }
  std::string list_html = "<section id=\"notes\"><h2>Notes on the data</h2>\n<ul>\n";
  for (const Diagnostic& note : diagnostics.list()) {
    list_html += fmt::format("<li>{} <code>{}</code> {}</li>\n", escape_html(note.message), escape_html(note.code),
                             escape_html(note.remedy));
  }
  if (diagnostics.empty()) list_html += "<li>No faults were found in the data.</li>\n";
  return list_html + "</ul></section>\n";
}

// A section with the plot; empty if the run has no data for the plot.
std::string plot_section(std::string_view id, std::string_view title, const Result<std::string>& svg) {
  if (!svg) return {};
  const std::size_t begin = svg->find("<svg");  // HTML must not contain an XML declaration
  if (begin == std::string::npos) return {};
  return fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, title, svg->substr(begin));
}

}  // namespace

std::string_view static_page_css() {
  return ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:1100px;"
         "padding:16px;font-variant-numeric:tabular-nums}table{border-collapse:collapse;margin:12px 0 28px}"
         "caption{text-align:left;opacity:.7;padding:4px 0}th,td{padding:3px 14px 3px 0;text-align:left;"
         "font-weight:400;vertical-align:baseline}td+td{white-space:nowrap}thead th{border-bottom:1px solid #8886;"
         "opacity:.7}h1{font-size:22px;overflow-wrap:anywhere}section{overflow-x:auto}svg{width:100%;height:auto}";
}

std::string static_page(const RunView& view) {
  std::string page = summary_section(view);
  page += plot_section("timeline", "Power over time", report::timeline_svg(view));
  page += plot_section("flame", "Flame graph", report::flame_svg(view, {report::PlotKind::flame, {}, {}, {}}));
  for (const LevelView& level : view.levels) page += level_section(level);
  page += plot_section("violins", "Variation between steps",
                       report::distributions_svg(view, {report::PlotKind::violin, {}, {}, {}}));
  page += plot_section("loss", "Loss against energy", report::loss_svg(view));
  return page + notes_section(view);
}

}  // namespace joulemap::page

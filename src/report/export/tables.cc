// SPDX-License-Identifier: Apache-2.0
#include "report/export/tables.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "report/export/table_escapes.h"
#include "report/export/table_rows.h"
#include "report/text/energy_rows.h"
#include "report/text/text_style.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kDefaultTableRows = 20;

// Headers of the columns after the name, in Markdown and LaTeX.
constexpr std::array<std::string_view, 8> kTableHeaders = {"J", "±", "share", "W", "s", "calls", "basis", "device"};

std::vector<std::string> formatted_row_cells(const TableRow& line, const TableContent& content) {
  const ReportRow& row = line.row;
  const auto text = [](const std::optional<double>& value, int digits) {
    return value ? format_number(*value, digits) : "";
  };
  std::vector<std::string> cells = {text(row.energy_j, 4),
                                    text(interval_half_width_j(row), 2),
                                    row.energy_j && content.total_j && *content.total_j > 0
                                        ? fmt::format("{:.1f} %", 100 * *row.energy_j / *content.total_j)
                                        : "",
                                    text(row.power_w, 3),
                                    row.time_s > 0 ? format_number(row.time_s, 3) : "",
                                    row.count.value_or(0) > 0 ? fmt::format("{}", *row.count) : "",
                                    row.energy_j ? row.basis : ""};
  if (content.has_device_column) cells.push_back(row.device);
  return cells;
}

std::string format_markdown_table(const ReportResult& result, const TableContent& content) {
  const std::size_t columns = content.has_device_column ? 8 : 7;
  std::string out = fmt::format("| {} |", result.by);
  std::string rule = "|---|";
  for (std::size_t i = 0; i < columns; ++i) {
    out += fmt::format(" {} |", kTableHeaders[i]);
    rule += i < 6 ? "---:|" : "---|";
  }
  out += "\n" + rule + "\n";
  for (const TableRow& line : content.rows) {
    out += line.is_remainder ? fmt::format("| *{}* |", escape_markdown(line.name))
                             : fmt::format("| {} |", escape_markdown(line.name));
    for (const std::string& text : formatted_row_cells(line, content))
      out += text.empty() ? "  |" : fmt::format(" {} |", escape_markdown(text));
    out += "\n";
  }
  return out + "\n" + escape_markdown(provenance_sentence(result)) + "\n";
}

// A LaTeX table; needs the package booktabs.
std::string format_latex_table(const ReportResult& result, const TableContent& content) {
  const std::size_t columns = content.has_device_column ? 8 : 7;
  std::string out = "% \\usepackage{booktabs}\n\\begin{table}\n  \\centering\n";
  out += fmt::format("  \\begin{{tabular}}{{l{}}}\n    \\toprule\n    {}",
                     content.has_device_column ? "rrrrrrll" : "rrrrrrl", escape_latex(result.by));
  for (std::size_t i = 0; i < columns; ++i) out += " & " + escape_latex(kTableHeaders[i]);
  out += " \\\\\n    \\midrule\n";
  bool has_midrule = false;
  for (const TableRow& line : content.rows) {
    if (line.is_remainder && !has_midrule) out += "    \\midrule\n";
    has_midrule = has_midrule || line.is_remainder;
    out += "    " + escape_latex(line.name);
    for (const std::string& text : formatted_row_cells(line, content)) out += " & " + escape_latex(text);
    out += " \\\\\n";
  }
  return out + fmt::format("    \\bottomrule\n  \\end{{tabular}}\n  \\caption{{Energy by {}. {}}}\n\\end{{table}}\n",
                           escape_latex(result.by), escape_latex(provenance_sentence(result)));
}

// A table for programs: numbers have all digits, intervals are low and high, unknown values are empty. As RFC 4180, but
// lines end with \n.
std::string format_csv_table(const ReportResult& result, const TableContent& content) {
  std::string out =
      fmt::format("{},device,energy_j,low_j,high_j,dynamic_j,power_w,time_s,count,basis,waiting_j\n", result.by);
  const auto text = [](const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; };
  for (const TableRow& line : content.rows) {
    const ReportRow& row = line.row;
    out +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", escape_csv_field(line.name), escape_csv_field(row.device),
                    text(row.energy_j), text(row.low_j), text(row.high_j), text(row.dynamic_j), text(row.power_w),
                    row.time_s > 0 ? fmt::format("{}", row.time_s) : "", row.count ? fmt::format("{}", *row.count) : "",
                    escape_csv_field(row.basis), text(row.waiting_j));
  }
  return out;
}

}  // namespace

std::string provenance_sentence(const ReportResult& result) {
  std::string measured;
  std::string estimated_domains;
  for (const DomainEnergy& domain : result.domains) {
    if (!domain.is_counted || !domain.joules) continue;
    std::string& domain_list = domain.provenance == Provenance::measured ? measured : estimated_domains;
    domain_list += (domain_list.empty() ? "" : ", ") + domain.name;
    if (domain.provenance == Provenance::measured) domain_list += " by " + domain.sensor;
  }
  std::string out;
  if (!measured.empty()) out += fmt::format("Measured: {}. ", measured);
  if (!estimated_domains.empty())
    out += fmt::format("Estimated{}: {}. ", measured.empty() ? "" : " (in no sum)", estimated_domains);
  if (out.empty()) out = "Nothing was measured. ";
  out += fmt::format("± is half of the {:.0f} % interval.", 100 * result.interval);
  if (!result.diagnostics.empty()) out += fmt::format(" Notes: {}.", result.diagnostics.list().front().message);
  if (result.diagnostics.list().size() > 1) out += fmt::format(" And {} more.", result.diagnostics.list().size() - 1);
  return out;
}

std::string format_report_table(const ReportResult& result, TableFormat format, const TableOptions& query) {
  std::size_t max_rows = query.max_rows.value_or(format == TableFormat::csv ? 0 : kDefaultTableRows);
  if (max_rows == 0) max_rows = std::numeric_limits<std::size_t>::max();
  const TableContent content = make_table_content(result, query.row_query, max_rows);
  if (format == TableFormat::markdown) return format_markdown_table(result, content);
  return format == TableFormat::latex ? format_latex_table(result, content) : format_csv_table(result, content);
}

}  // namespace joulemap::report

// SPDX-License-Identifier: Apache-2.0
#include "report/ledger_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/energy_rows.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kPathColumns = 38;

// A kernel is told by the beginning of its name, a layer by the end of its path.
std::string fitted(const std::string& text, bool is_path) {
  if (text.size() <= kPathColumns) return text;
  return is_path ? ".." + text.substr(text.size() - kPathColumns + 2) : text.substr(0, kPathColumns - 2) + "..";
}

std::string path_text(const ReportRow& row) {
  if (row.path.size() == 1) return row.display_name;
  std::string text;
  for (const std::string& element : row.path) text += (text.empty() ? "" : " ") + element;
  return text;
}

// Room for how sure the rows are, where that is known of any.
constexpr std::size_t kIntervalColumns = 9;

std::size_t interval_columns(const ReportResult& result) {
  const bool known =
      std::any_of(result.rows.begin(), result.rows.end(), [](const ReportRow& row) { return row.low_j; });
  return known ? kIntervalColumns : 0;
}

// Half of the interval as a share of the energy.
std::string interval_text(const ReportRow& row) {
  if (!row.low_j || !row.high_j || !row.energy_j || *row.energy_j <= 0) return {};
  return fmt::format("  +- {:.0f} %", 50 * (*row.high_j - *row.low_j) / *row.energy_j);
}

std::string line(const std::string& joules, const std::string& share, double time_s, const std::string& count,
                 const std::string& device, const std::string& where) {
  return fmt::format(" {} {:>6} {:>9} s {:>8}  {:<5} {}\n", joules, share, number(time_s, 3), count, device, where);
}

std::string row_line(const ReportRow& row, std::size_t columns) {
  const std::string joules = fmt::format("{:>9} J{:<{}}", row.energy_j ? number(*row.energy_j) : "?",
                                         columns > 0 ? interval_text(row) : "", columns);
  return line(joules, row.share ? fmt::format("{:.1f} %", 100 * *row.share) : "", row.time_s,
              row.count.value_or(0) > 0 ? fmt::format("{}x", *row.count) : "", row.device.substr(0, 5),
              fitted(path_text(row), row.path.size() > 1));
}

std::string rest_line(const ReportResult& result, std::size_t from, std::size_t columns) {
  std::optional<double> energy_j;  // of those whose energy is known
  double time_s = 0;
  for (std::size_t i = from; i < result.rows.size(); ++i) {
    if (const auto& known_j = result.rows[i].energy_j) energy_j = energy_j.value_or(0) + *known_j;
    time_s += result.rows[i].time_s;
  }
  const std::string share = energy_j && result.attributed_j && *result.attributed_j > 0
                                ? fmt::format("{:.1f} %", 100 * *energy_j / *result.attributed_j)
                                : "";
  return line(fmt::format("{:>9} J{:<{}}", energy_j ? number(*energy_j) : "?", "", columns), share, time_s, "", "",
              fmt::format("{} more rows (--json has all)", result.rows.size() - from));
}

}  // namespace

std::string ledger_text(const ReportResult& result, std::size_t most_rows) {
  if (result.by == "domain" || result.rows.empty()) return {};
  std::string out = fmt::format("\n By {}\n", result.by);
  const std::size_t shown = std::min(most_rows, result.rows.size());
  const std::size_t columns = interval_columns(result);
  for (std::size_t i = 0; i < shown; ++i) out += row_line(result.rows[i], columns);
  if (shown < result.rows.size()) out += rest_line(result, shown, columns);
  if (!result.attributed_j) return out;
  out += "  -----------\n";
  out += fmt::format(" {:>9} J attributed, {} J idle, {} J not attributed\n", number(*result.attributed_j),
                     number(result.idle_j.value_or(0)), number(result.unattributed_j.value_or(0)));
  return out;
}

}  // namespace joulemap::report

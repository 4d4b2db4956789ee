// SPDX-License-Identifier: Apache-2.0
#include "report/text/report_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable_text.h"
#include "base/text.h"
#include "model/run_rates.h"
#include "report/text/account_text.h"
#include "report/text/command_energy.h"
#include "report/text/diagnostics_text.h"
#include "report/text/energy_rows.h"
#include "report/text/energy_tree.h"
#include "report/text/idle_gpu_text.h"
#include "report/text/serving_text.h"
#include "report/text/sparkline.h"
#include "report/text/summary_text.h"

namespace joulemap::report {
namespace {

// Columns for the name to the left of a power curve and the range to its right.
constexpr std::size_t kWidthBesideCurve = 32;
constexpr std::size_t kMaxCurveWidth = 120;

std::string report_title(const ReportResult& result, const TextStyle& style) {
  std::string subject;
  for (const std::string& argument : result.command) subject += (subject.empty() ? "" : " ") + argument;
  const std::string subject_text = subject.empty() ? "a recording" : quoted(subject, style.columns - 24);
  std::string out = "\n" + style.bold(" Energy of " + subject_text) + "\n";
  if (!result.complete) out += " The recording is incomplete; the report covers what was written.\n";
  return out + "\n";
}

std::string report_totals_text(const ReportResult& result) {
  std::string out;
  const auto add = [&](std::string_view name, const std::optional<double>& joules) {
    if (!joules) return;
    const std::optional<double> watts = result.elapsed_s > 0 ? std::optional(*joules / result.elapsed_s) : std::nullopt;
    out += energy_row_text({std::string(name), joules, {}, watts, ""});
  };
  add("total measured", joules_of(result.totals.measured));
  add("total estimated", joules_of(result.totals.estimated));
  if (const double background_j = noticeable_background_j(result); background_j > 0)
    add("of it by the command", *ledger_total_j(result) - background_j);
  return out.empty() ? out : "  -----------\n" + out;
}

std::string power_curves_text(const ReportResult& result, const TextStyle& style) {
  if (result.power.empty()) return {};
  const std::size_t columns = std::min(kMaxCurveWidth, style.columns - kWidthBesideCurve);
  std::string out = "\n" + style.bold(fmt::format(" Power over {} s", format_number(result.elapsed_s))) + "\n";
  for (const PowerSeries& series : result.power) {
    double lowest = 0;
    double highest = 0;
    bool has_value = false;
    for (const std::optional<double>& watts : series.watts) {
      if (!watts) continue;
      lowest = has_value ? std::min(lowest, *watts) : *watts;
      highest = has_value ? std::max(highest, *watts) : *watts;
      has_value = true;
    }
    if (!has_value) continue;
    const std::string line = sparkline(series.watts, columns, highest, style.is_unicode());
    out += fmt::format("  {:<13} {} {}..{} W\n", printable(series.domain), style.cyan(line), format_number(lowest, 3),
                       format_number(highest, 3));
  }
  return out;
}

}  // namespace

std::string report_text(const ReportResult& result, const TreeTextOptions& tree_options, const TextStyle& style,
                        const std::optional<CarbonAccount>& account) {
  std::string out = report_title(result, style);
  if (const std::string waiting = idle_gpu_headline(result); !waiting.empty()) out += waiting + "\n";
  for (const DomainEnergy& domain : result.domains) out += energy_row_text(make_energy_row(domain));
  if (result.domains.empty()) out += "  no sensor returned a value\n";
  out += report_totals_text(result) + serving_text(result, style) + tree_text(result, tree_options, style) +
         idle_gpu_table(result, style) + power_curves_text(result, style) + summary_text(result, style);
  if (account) out += account_text(*account, style);
  const std::string notes = diagnostics_text(result.diagnostics);
  if (!notes.empty()) out += "\n" + notes;
  return out + "\n";
}

}  // namespace joulemap::report

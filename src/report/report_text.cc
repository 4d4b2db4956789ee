// SPDX-License-Identifier: Apache-2.0
#include "report/report_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/diagnostics_text.h"
#include "report/energy_rows.h"
#include "report/ledger_text.h"
#include "report/sparkline.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kCurveColumns = 48;

std::string title(const ReportResult& result) {
  std::string subject;
  for (const std::string& argument : result.command) subject += (subject.empty() ? "" : " ") + argument;
  std::string out =
      subject.empty() ? "\n Energy of a recording\n" : fmt::format("\n Energy of {}\n", quoted(subject, 56));
  if (!result.complete) out += " The recording is not complete: this is what it holds.\n";
  return out + "\n";
}

std::string totals(const ReportResult& result) {
  std::string out;
  const auto add = [&](std::string_view name, const std::optional<double>& joules) {
    if (!joules) return;
    const std::optional<double> watts = result.elapsed_s > 0 ? std::optional(*joules / result.elapsed_s) : std::nullopt;
    out += row_text({std::string(name), joules, {}, watts, ""});
  };
  add("total measured", result.totals.measured_j);
  add("total estimated", result.totals.estimated_j);
  return out.empty() ? out : "  -----------\n" + out;
}

std::string power_curves(const ReportResult& result, Characters characters) {
  if (result.power.empty()) return {};
  std::string out = fmt::format("\n Power over {} s\n", number(result.elapsed_s));
  for (const PowerSeries& series : result.power) {
    double lowest = 0;
    double highest = 0;
    bool any = false;
    for (const std::optional<double>& watts : series.watts) {
      if (!watts) continue;
      lowest = any ? std::min(lowest, *watts) : *watts;
      highest = any ? std::max(highest, *watts) : *watts;
      any = true;
    }
    if (!any) continue;
    const std::string line = sparkline(series.watts, kCurveColumns, highest, characters == Characters::unicode);
    out += fmt::format("  {:<13} {} {}..{} W\n", series.domain, line, number(lowest, 3), number(highest, 3));
  }
  return out;
}

std::string facts(const ReportResult& result) {
  std::string out = fmt::format("\n  {:>11} s elapsed\n", number(result.elapsed_s));
  if (result.epochs > 0) out += fmt::format("  {:>11} epochs\n", result.epochs);
  if (result.steps > 0) {
    out += fmt::format("  {:>11} steps", result.steps);
    // Probing is no part of any step.
    const double probed_j = result.probe ? result.probe->energy_j.value_or(0) : 0;
    if (result.totals.measured_j)
      out += fmt::format(", {} J each",
                         number((*result.totals.measured_j - probed_j) / static_cast<double>(result.steps)));
    out += "\n";
  }
  for (const ReportedMetric& metric : result.metrics) {
    out += fmt::format("  {:>11} {} (first {}, {} values)\n", number(metric.last), metric.name, number(metric.first),
                       metric.count);
  }
  if (result.probe) {
    out += fmt::format("  {:>11} s of it probing, {} J\n", number(result.probe->time_s),
                       result.probe->energy_j ? number(*result.probe->energy_j) : "?");
  }
  if (result.dither_s) {
    const double share = result.elapsed_s > 0 ? 100 * *result.dither_s / result.elapsed_s : 0;
    out += fmt::format("  {:>11} s of it held up by --dither ({:.2g} %)\n", number(*result.dither_s), share);
  }
  if (result.own_cpu_s) {
    const double share = result.elapsed_s > 0 ? 100 * *result.own_cpu_s / result.elapsed_s : 0;
    out += fmt::format("  {:>11} s CPU time spent by joulemap itself ({:.2g} %)\n", number(*result.own_cpu_s), share);
  }
  if (result.signal) {
    out += fmt::format("  the command was killed by signal {} (exit code {})\n", *result.signal,
                       result.exit_code.value_or(0));
  } else if (result.exit_code.value_or(0) != 0) {
    out += fmt::format("  the command failed with exit code {}\n", *result.exit_code);
  }
  return out;
}

}  // namespace

std::string report_text(const ReportResult& result, Characters characters) {
  std::string out = title(result);
  for (const DomainEnergy& domain : result.domains) out += row_text(row_of(domain));
  if (result.domains.empty()) out += "  no sensor gave a value\n";
  out += totals(result) + ledger_text(result) + power_curves(result, characters) + facts(result);
  const std::string notes = diagnostics_text(result.diagnostics);
  if (!notes.empty()) out += "\n" + notes;
  return out + "\n";
}

}  // namespace joulemap::report

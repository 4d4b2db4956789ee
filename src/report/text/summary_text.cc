// SPDX-License-Identifier: Apache-2.0
#include "report/text/summary_text.h"

#include <fmt/format.h>

#include "model/evaluation_rows.h"
#include "model/run_rates.h"
#include "report/text/command_energy.h"
#include "report/text/energy_rows.h"

namespace joulemap::report {
namespace {

std::string energy_per_unit_line(std::string_view name, const std::optional<double>& units, const RunRates& rates,
                                 const TextStyle& style) {
  if (!units || *units <= 0) return {};
  if (*units == 1) name.remove_suffix(1);  // "1 step" instead of "1 steps"
  std::string out = fmt::format("  {:>11.0f} {}", *units, name);
  if (const std::optional<double> unit_energy_j = rates.energy_per_unit(units)) {
    out += fmt::format(", {} J each", format_number(*unit_energy_j));
    if (rates.half_width_j)
      out += fmt::format(" ({} {})", style.plus_minus_sign(),
                         format_number(*unit_energy_j * rates.relative_half_width(), 2));
  }
  if (rates.time_s > 0) {
    out +=
        fmt::format(", {} each, {}/s", duration_text(rates.time_s / *units), format_number(*units / rates.time_s, 3));
  }
  return out + "\n";
}

std::string energy_per_unit_text(const ReportResult& result, const TextStyle& style) {
  const RunRates rates = command_rates(result);
  std::string out = energy_per_unit_line("epochs", rates.epochs, rates, style) +
                    energy_per_unit_line("steps", rates.steps, rates, style) +
                    energy_per_unit_line("samples", rates.samples, rates, style);
  if (!out.empty() && !result.is_clipped) {
    std::string evaluation;
    if (rates.evaluation_steps) {
      evaluation =
          fmt::format(" and {:.0f} {} step{}", *rates.evaluation_steps,
                      is_inference_part_of_training(result) ? "inference" : "evaluation",
                      *rates.evaluation_steps > 1 ? "s" : "");
    }
    if (are_other_processes_included(result)) evaluation += " and other processes";
    out += fmt::format("              (whole run: start-up{} included{})\n", evaluation,
                       result.probe ? ", probing not" : "");
  }
  const std::optional<double> energy_delay_product_js = rates.energy_delay_js();
  if (!energy_delay_product_js) return out;
  const bool is_estimated = rates.provenance == Provenance::estimated;
  out += fmt::format("  {:>11} J s energy-delay product{}", format_number(*energy_delay_product_js),
                     is_estimated ? " (estimated)" : "");
  if (rates.steps)
    out += fmt::format(", {} J s per step", format_number(*energy_delay_product_js / *rates.steps / *rates.steps));
  return out + "\n";
}

std::string last_metrics_text(const ReportResult& result) {
  std::string out;
  for (const ReportedMetric& metric : result.metrics) {
    if (metric.name == "samples") continue;
    out += fmt::format("  {:>11} {} (first {}, {} values)\n", format_number(metric.last), printable(metric.name),
                       format_number(metric.first), metric.count);
  }
  return out;
}

std::string joulemap_cost_text(const ReportResult& result) {
  std::string out;
  if (result.probe) {
    out += fmt::format("  {:>11} s probing, {} J\n", format_number(result.probe->time_s),
                       result.probe->energy_j ? format_number(*result.probe->energy_j) : "?");
  }
  if (result.dither_s) {
    const double share = result.elapsed_s > 0 ? 100 * *result.dither_s / result.elapsed_s : 0;
    out += fmt::format("  {:>11} s paused by --dither ({:.2g} %)\n", format_number(*result.dither_s), share);
  }
  if (result.overhead_cpu_s) {
    const double share = result.elapsed_s > 0 ? 100 * *result.overhead_cpu_s / result.elapsed_s : 0;
    out +=
        fmt::format("  {:>11} s CPU time used by joulemap ({:.2g} %)\n", format_number(*result.overhead_cpu_s), share);
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

std::string summary_text(const ReportResult& result, const TextStyle& style) {
  return fmt::format("\n  {:>11} s elapsed\n", format_number(result.elapsed_s)) + energy_per_unit_text(result, style) +
         last_metrics_text(result) + joulemap_cost_text(result);
}

}  // namespace joulemap::report

// SPDX-License-Identifier: Apache-2.0
#include "report/export/markdown_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/text/command_energy.h"
#include "report/text/energy_rows.h"
#include "report/text/text_style.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kMaxSummaryRows = 30;

// Escapes the special characters of Markdown and HTML.
std::string escape_markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (std::string_view("\\`*_{}[]#|>~").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string join_with_commas(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : " ") + part;
  return out;
}

std::string run_rates_markdown(const RunView& view) {
  const RunRates rates = command_rates(view);
  std::string out;
  const auto add = [&](std::string_view name, const std::optional<double>& value, std::string_view unit) {
    if (value) out += fmt::format("| {} | {} {} |\n", name, format_number(*value), unit);
  };
  add(rates.is_estimated() ? "energy (estimated)" : "energy", view.rates.energy_j, "J");
  if (noticeable_background_j(view) > 0) add("of it by the command", rates.energy_j, "J");
  add("time", rates.time_s, "s");
  add("per step", rates.energy_per_unit(rates.steps), "J");
  add("per epoch", rates.energy_per_unit(rates.epochs), "J");
  add("per sample", rates.energy_per_unit(rates.samples), "J");
  add("samples per second", rates.samples_per_s(), "");
  add("energy-delay product", rates.energy_delay_js(), "J s");
  return out.empty() ? out : "| metric | value |\n|---|---|\n" + out + "\n";
}

std::string domain_table_markdown(const std::vector<DomainEnergy>& domains) {
  std::string out = "| domain | J | ± | W | provenance |\n|---|---|---|---|---|\n";
  for (const DomainEnergy& domain : domains) {
    out += fmt::format("| {} | {} | {} | {} | {} |\n", escape_markdown_cell(domain.name),
                       format_optional_number(domain.joules), format_optional_number(domain.uncertainty_j),
                       format_optional_number(domain.mean_w), escape_markdown_cell(domain_origin_text(domain)));
  }
  return domains.empty() ? "" : out + "\n";
}

std::string layer_table_lines(const RunView& view) {
  const LevelView* const level = view.level("layer");
  if (level == nullptr) return {};
  std::string out = "| layer | device | J | low | high | share | W |\n|---|---|---|---|---|---|---|\n";
  for (std::size_t i = 0; i < std::min(level->rows.size(), kMaxSummaryRows); ++i) {
    const ReportRow& row = level->rows[i];
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", escape_markdown_cell(join_with_commas(row.path)),
                       escape_markdown_cell(row.device), format_optional_number(row.energy_j),
                       format_optional_number(row.low_j), format_optional_number(row.high_j),
                       row.share ? percent_text(*row.share) : "-", format_optional_number(row.power_w));
  }
  if (level->idle_j) out += fmt::format("| *idle* | | {} | | | | |\n", format_number(*level->idle_j));
  if (level->unattributed_j)
    out += fmt::format("| *not attributed* | | {} | | | | |\n", format_number(*level->unattributed_j));
  if (level->rows.size() > kMaxSummaryRows)
    out += fmt::format("\n{} more layers.\n", level->rows.size() - kMaxSummaryRows);
  return out + "\n";
}

std::string diagnostic_list_markdown(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& note : diagnostics.list()) out += fmt::format("- {}\n", escape_markdown_cell(note.message));
  return out.empty() ? out : "Notes:\n\n" + out;
}

}  // namespace

std::string markdown_summary(const RunView& view) {
  const std::string command = join_with_commas(view.run.command);
  std::string out =
      fmt::format("**Energy of {}**\n\n", command.empty() ? "a recording" : escape_markdown_cell(command));
  if (!view.run.complete) out += "The recording is incomplete; the report covers what was written.\n\n";
  return out + run_rates_markdown(view) + domain_table_markdown(view.run.domains) + layer_table_lines(view) +
         diagnostic_list_markdown(view.run.diagnostics);
}

}  // namespace joulemap::report

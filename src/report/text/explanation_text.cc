// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "predict/model/features.h"
#include "report/text/energy_rows.h"
#include "report/text/energy_text.h"
#include "report/text/prediction_text.h"
#include "report/text/text_table.h"

namespace joulemap::report {
namespace {

using predict::Explanation;

std::string heading(const Explanation& told) {
  const predict::Operation& operation = told.operation;
  std::string out = fmt::format("{} {}", operation.source, name_of(operation.kind));
  if (!operation.form.empty()) out += " " + operation.form;
  out += fmt::format(", {}, {}", name_of(operation.dtype), name_of(operation.pass));
  if (operation.count > 1) out += fmt::format(", {} times", operation.count);
  return printable(out);
}

std::string physics_table(const Explanation& told, const TextStyle& style) {
  TextTable table{"", {"physics", "datasheet grants", "fitted", "share"}, {false, true, true, true}, {}};
  double sum_s = 0;
  for (const double part : told.parts) sum_s += part;
  for (std::size_t index = 0; index < predict::kTerms; ++index) {
    table.rows.push_back({std::string(predict::term_names()[index]), duration_text(told.granted[index]),
                          duration_text(told.parts[index]), percent_text(sum_s > 0 ? told.parts[index] / sum_s : 0)});
  }
  return terminal_table(table, "   ", style.columns);
}

// Three features per line; logarithmic features are shown as logarithms, as in the input of the trees.
std::string features_table(const Explanation& told, const TextStyle& style) {
  TextTable table{"", {"feature", "", "feature", "", "feature", ""}, {false, true, false, true, false, true}, {}};
  const std::size_t beside = table.heads.size() / 2;
  for (std::size_t index = 0; index < told.features.size() && index < predict::feature_names().size(); ++index) {
    if (index % beside == 0) table.rows.emplace_back(table.heads.size());
    table.rows.back()[2 * (index % beside)] = predict::feature_names()[index];
    table.rows.back()[2 * (index % beside) + 1] = number(told.features[index], 3);
  }
  return terminal_table(table, "   ", style.columns);
}

std::string operation_text(const Explanation& told, const TextStyle& style) {
  if (told.operation.kind == predict::Kind::view)
    return "   " + heading(told) + ": moves nothing and launches nothing\n\n";
  const predict::OperationEstimate& guess = told.estimate;
  std::string out = "   " + style.strong(heading(told)) + "\n";
  out += "   " + printable(parameters_text(told.operation)) + "\n";
  out += fmt::format("   {}FLOP, {}B; held up by {}\n", prefixed_text(told.work.flops), prefixed_text(told.work.bytes),
                     name_of(told.bound));
  out += fmt::format("   physics: {} in {}; trees: {} times the energy, {} times the time, trusted to {}\n",
                     energy_text(told.physical_j), duration_text(guess.physical_time_s), number(told.tree_factor, 3),
                     number(guess.physical_time_s > 0 ? guess.time_s / guess.physical_time_s : 1, 3),
                     percent_text(guess.trust));
  out += fmt::format("   so {} in {}\n", energy_text(guess.energy_j), duration_text(guess.time_s));
  return out + physics_table(told, style) + features_table(told, style) + "\n";
}

}  // namespace

std::string explanation_text(const predict::PredictionReport& report, const TextStyle& style) {
  if (report.explanation.empty()) return {};
  std::string out = "\n " + style.strong("Why " + printable(report.explained)) + "\n";
  for (const Explanation& told : report.explanation) out += operation_text(told, style);
  return out;
}

}  // namespace joulemap::report

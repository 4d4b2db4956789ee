// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "predict/model/features.h"
#include "report/text/energy_rows.h"
#include "report/text/energy_text.h"
#include "report/text/prediction_text.h"
#include "report/text/text_table.h"

namespace joulemap::report {
namespace {

using predict::OperationExplanation;

std::string explanation_heading(const OperationExplanation& explanation) {
  const predict::Operation& operation = explanation.operation;
  std::string out = fmt::format("{} {}", operation.source, name_of(operation.kind));
  if (!operation.form.empty()) out += " " + operation.form;
  out += fmt::format(", {}, {}", name_of(operation.dtype), name_of(operation.pass));
  if (operation.count > 1) out += fmt::format(", {} times", operation.count);
  return printable(out);
}

std::string physics_table_text(const OperationExplanation& explanation, const TextStyle& style) {
  TextTable table{"", {"physics", "by datasheet", "fitted", "share"}, {false, true, true, true}, {}};
  double sum_s = 0;
  for (const double part : explanation.physical_terms) sum_s += part;
  for (std::size_t index = 0; index < predict::kPhysicsTermCount; ++index) {
    if (explanation.datasheet_terms[index] == 0) continue;
    table.rows.push_back({std::string(name_of(static_cast<predict::PhysicsTerm>(index))),
                          duration_text(explanation.datasheet_terms[index]),
                          duration_text(explanation.physical_terms[index]),
                          percent_text(sum_s > 0 ? explanation.physical_terms[index] / sum_s : 0)});
  }
  return terminal_table(table, "   ", style.columns);
}

// Three features per line, with the values that the regression trees get: some are logarithms.
std::string features_table_text(const OperationExplanation& explanation, const TextStyle& style) {
  TextTable table{"", {"feature", "", "feature", "", "feature", ""}, {false, true, false, true, false, true}, {}};
  const std::size_t column_pair_count = table.column_headers.size() / 2;
  for (std::size_t index = 0; index < explanation.features.size() && index < predict::feature_names().size(); ++index) {
    if (index % column_pair_count == 0) table.rows.emplace_back(table.column_headers.size());
    table.rows.back()[2 * (index % column_pair_count)] = predict::feature_names()[index];
    table.rows.back()[2 * (index % column_pair_count) + 1] = format_number(explanation.features[index], 3);
  }
  return terminal_table(table, "   ", style.columns);
}

std::string explained_operation_text(const OperationExplanation& explanation, const TextStyle& style) {
  if (explanation.operation.kind == predict::Kind::view)
    return "   " + explanation_heading(explanation) + ": moves no data and launches no kernel\n\n";
  const predict::OperationEstimate& operation_estimate = explanation.estimate;
  std::string out = "   " + style.bold(explanation_heading(explanation)) + "\n";
  out += "   " + printable(parameters_text(explanation.operation)) + "\n";
  out += fmt::format("   {}FLOP, {}B; bound by {}\n", si_prefixed_text(explanation.work.flops),
                     si_prefixed_text(explanation.work.bytes), name_of(explanation.bound));
  out += fmt::format(
      "   physics: {} in {}; trees: {} x energy, {} x time, weight {}\n", energy_text(explanation.physical_j),
      duration_text(operation_estimate.physical_time_s), format_number(explanation.tree_factor, 3),
      format_number(
          operation_estimate.physical_time_s > 0 ? operation_estimate.time_s / operation_estimate.physical_time_s : 1,
          3),
      percent_text(operation_estimate.trust_factor));
  out += fmt::format("   result: {} in {}\n", energy_text(operation_estimate.energy_j),
                     duration_text(operation_estimate.time_s));
  return out + physics_table_text(explanation, style) + features_table_text(explanation, style) + "\n";
}

}  // namespace

std::string prediction_explanation_text(const predict::PredictionReport& report, const TextStyle& style) {
  if (report.explanation.empty()) return {};
  std::string out = "\n " + style.bold("Explanation of " + printable(report.explained_layer)) + "\n";
  for (const OperationExplanation& explanation : report.explanation)
    out += explained_operation_text(explanation, style);
  return out;
}

}  // namespace joulemap::report

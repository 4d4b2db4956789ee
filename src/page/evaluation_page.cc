// SPDX-License-Identifier: Apache-2.0
#include "page/evaluation_page.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "page/html_sections.h"
#include "page/page_html.h"
#include "report/plot/prediction_plots.h"

namespace joulemap::page {
namespace {

std::string percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

report::TextTable make_scores_table(std::string_view caption, std::span<const predict::NamedScore> scores,
                                    bool has_intervals) {
  report::TextTable table{std::string(caption),
                          {"", "cases", "RMSPE", "MAPE", "median", "P90", "bias", "Kendall's tau"},
                          {false, true, true, true, true, true, true, true},
                          {}};
  if (has_intervals) {
    table.column_headers.insert(table.column_headers.end(), {"coverage", "half width"});
    table.is_number.insert(table.is_number.end(), {true, true});
  }
  for (const auto& [name, score] : scores) {
    std::vector<std::string> row = {name,
                                    fmt::format("{}", score.cases),
                                    percent(score.rmspe),
                                    percent(score.mape),
                                    percent(score.median),
                                    percent(score.p90),
                                    fmt::format("{:+.1f} %", 100 * score.bias),
                                    fmt::format("{:.3f}", score.tau)};
    if (has_intervals) row.insert(row.end(), {percent(score.coverage), percent(score.width)});
    table.rows.push_back(std::move(row));
  }
  return table;
}

report::TextTable make_learners_table(std::span<const predict::LearnerScores> learners) {
  report::TextTable table{"RMSPE of each learner of the residuals on held-out data", {""}, {false}, {}};
  if (learners.empty()) return table;
  for (const predict::LearnerScores& learner_scores : learners) {
    table.column_headers.emplace_back(name_of(learner_scores.learner));
    table.is_number.push_back(true);
  }
  for (std::size_t row = 0; row < learners.front().scores.size(); ++row) {
    std::vector<std::string> cells = {learners.front().scores[row].name};
    for (const predict::LearnerScores& learner_scores : learners) {
      const predict::Score& score = learner_scores.scores[row].score;
      cells.push_back(score.cases > 0 ? percent(score.rmspe) : "no cases");
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string additivity_html(std::span<const predict::NetworkCase> cases) {
  std::vector<double> factors;
  for (const predict::NetworkCase& network_case : cases) {
    if (network_case.operations_j > 0) factors.push_back(network_case.additivity_factor());
  }
  if (factors.empty()) return {};
  return fmt::format(
             "<p>Median {:.2f}, P10 {:.2f}, P90 {:.2f} of {} network settings. Energies of operations are predicted "
             "from measurements of isolated operations. A factor above 1 is energy that no operation uses alone, such "
             "as waiting for the host.</p>\n",
             predict::quantile(factors, 0.5), predict::quantile(factors, 0.1), predict::quantile(factors, 0.9),
             factors.size()) +
         strip_xml_declaration(report::additivity_svg(cases));
}

// "4.1 % (23 operations)", or that nothing was measured twice.
std::string noise_text(const predict::NoiseFloor& noise, std::string_view case_kind) {
  if (noise.operations == 0) return fmt::format("no {} were measured twice", case_kind);
  return fmt::format("{} ({} {})", percent(noise.energy), noise.operations, case_kind);
}

std::string scores_section(std::string_view id, std::string_view title, std::span<const predict::NamedScore> scores,
                           bool has_intervals = false) {
  return scores.empty() ? "" : table_section(id, title, make_scores_table(title, scores, has_intervals));
}

}  // namespace

std::string evaluation_html(const predict::Evaluation& evaluation) {
  std::string page =
      sections_page_begin("Accuracy of predictions on held-out data",
                          fmt::format("Learner of the residuals: {}. Difference of repeated measurements: {}; {}.",
                                      name_of(evaluation.learner), noise_text(evaluation.operation_noise, "operations"),
                                      noise_text(evaluation.network_noise, "network settings")));
  page += html_section("networks", "Networks: predicted against measured",
                       strip_xml_declaration(report::predicted_networks_svg(evaluation.network_cases)) +
                           html_table(make_scores_table("Leave-one-family-out", evaluation.networks, true)));
  page += scores_section("held-out", "Networks of held-out families", evaluation.held_out_networks, true);
  page += html_section("operations", "Operations: predicted against measured",
                       strip_xml_declaration(report::predicted_operations_svg(evaluation.operation_cases)));
  page += html_section(
      "kinds", "Errors by kind of operation",
      strip_xml_declaration(
          report::errors_by_kind_svg(evaluation.operation_cases, "Energy of operations, predicted without them")) +
          html_table(make_scores_table("Random folds of distinct operations", evaluation.operations, false)));
  page += html_section("additivity", "Additivity of operations", additivity_html(evaluation.operations_only_cases));
  page += table_section("learners", "Learners", make_learners_table(evaluation.learners));
  page += scores_section("times", "Times of operations within networks", evaluation.layers);
  page += scores_section("operations-only", "Networks, from operations alone", evaluation.operations_only_scores);
  page += scores_section("larger-networks", "Networks larger than those in the training data",
                         evaluation.larger_network_scores);
  page += scores_section("larger-operations", "Operations larger than those in the training data",
                         evaluation.larger_operation_scores);
  return page + std::string(kSectionsPageEnd);
}

}  // namespace joulemap::page

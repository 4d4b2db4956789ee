// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "formats/csv.h"
#include "formats/json_writer.h"
#include "predict/evaluation/evaluation.h"

namespace joulemap::predict {
namespace {

void write_table(std::string& text, std::string_view title, std::span<const NamedScore> scores, bool intervals) {
  fmt::format_to(std::back_inserter(text), "\n## {}\n\n| | cases | RMSPE | MAPE | median | p90 | bias | tau |{}\n",
                 title, intervals ? " coverage | half width |" : "");
  text += intervals ? "|---|---|---|---|---|---|---|---|---|---|\n" : "|---|---|---|---|---|---|---|---|\n";
  for (const auto& [name, score] : scores) {
    fmt::format_to(std::back_inserter(text),
                   "| {} | {} | {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} % | {:+.1f} % | {:.3f} |", name, score.cases,
                   100 * score.rmspe, 100 * score.mape, 100 * score.median, 100 * score.p90, 100 * score.bias,
                   score.tau);
    if (intervals)
      fmt::format_to(std::back_inserter(text), " {:.1f} % | {:.1f} % |", 100 * score.coverage, 100 * score.width);
    text += "\n";
  }
}

void write_scores(formats::JsonWriter& json, std::string_view key, std::span<const NamedScore> scores) {
  json.key(key).begin_array();
  for (const auto& [name, score] : scores) {
    json.begin_object()
        .member("name", name)
        .member("cases", static_cast<std::uint64_t>(score.cases))
        .member("rmspe", score.rmspe);
    json.member("mape", score.mape).member("median", score.median).member("p90", score.p90).member("bias", score.bias);
    json.member("tau", score.tau).member("coverage", score.coverage).member("half_width", score.width).end_object();
  }
  json.end_array();
}

void write_study_table(std::string& text, std::string_view title, std::span<const NamedScore> scores) {
  fmt::format_to(std::back_inserter(text),
                 "\n### {}\n\n| | cases | RMSPE | published | median | p90 | bias |\n|---|---|---|---|---|---|---|\n",
                 title);
  for (const auto& [name, score] : scores) {
    const std::optional<double> published_error = published_rmspe(name);
    fmt::format_to(std::back_inserter(text), "| {} | {} | {:.1f} % | {} | {:.1f} % | {:.1f} % | {:+.1f} % |\n", name,
                   score.cases, 100 * score.rmspe,
                   published_error ? fmt::format("{:.1f} %", 100 * *published_error) : "", 100 * score.median,
                   100 * score.p90, 100 * score.bias);
  }
}

std::vector<NamedScore> named_instance_scores(const StudyScores& scores) {
  return {{"instances", scores.instances},
          {"vgg", scores.vgg_instances},
          {"instances without a layer seen in training", scores.unseen_instances},
          {"vgg without a layer seen in training", scores.unseen_vgg_instances}};
}

void write_study_evaluation(std::string& text, const StudyEvaluation& seed) {
  fmt::format_to(std::back_inserter(text),
                 "\n## The seed's protocol\n\n{} instances (network, batch, size), in five-fold cross-validation; {} "
                 "more have layers that were not measured. The column `published` shows the best published value.\n",
                 seed.instances, seed.incomplete_instances);
  if (!seed.unmeasured_kinds.empty())
    fmt::format_to(std::back_inserter(text), "Without layers of these kinds, which were not measured: {}.\n",
                   fmt::join(seed.unmeasured_kinds, ", "));
  for (const StudyScores& scores : seed.scores) {
    write_study_table(text, fmt::format("Sums over layers, trained on {}", scores.training_data),
                      named_instance_scores(scores));
    write_study_table(text, fmt::format("Every layer of each instance, trained on {}", scores.training_data),
                      scores.layers);
    write_study_table(text, fmt::format("Layers not seen in training, trained on {}", scores.training_data),
                      scores.unseen_layers);
    write_study_table(text, fmt::format("Distinct layers in five folds, trained on {}", scores.training_data),
                      scores.distinct_layers);
  }
}

void write_study_evaluation(formats::JsonWriter& json, const StudyEvaluation& seed) {
  json.key("seed_protocol").begin_object().member("instances", static_cast<std::uint64_t>(seed.instances));
  json.member("incomplete", static_cast<std::uint64_t>(seed.incomplete_instances))
      .key("unmeasured_kinds")
      .begin_array();
  for (const std::string& kind : seed.unmeasured_kinds) json.value(kind);
  json.end_array().key("models").begin_array();
  for (const StudyScores& scores : seed.scores) {
    json.begin_object().member("learned_from", scores.training_data);
    write_scores(json, "sums", named_instance_scores(scores));
    write_scores(json, "layers", scores.layers);
    write_scores(json, "unseen_layers", scores.unseen_layers);
    write_scores(json, "distinct_layers", scores.distinct_layers);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_learners(formats::JsonWriter& json, std::span<const LearnerScores> learners) {
  json.key("learners").begin_array();
  for (const LearnerScores& learner_scores : learners) {
    json.begin_object().member("learner", name_of(learner_scores.learner));
    write_scores(json, "scores", learner_scores.scores);
    json.end_object();
  }
  json.end_array();
}

// Quantiles of the additivity factors of networks, whose operations were measured alone.
void write_additivity(formats::JsonWriter& json, std::span<const NetworkCase> cases) {
  std::vector<double> factors;
  for (const NetworkCase& network_case : cases) {
    if (network_case.operations_j > 0) factors.push_back(network_case.additivity_factor());
  }
  json.key("additivity_factor").begin_object().member("networks", static_cast<std::uint64_t>(factors.size()));
  if (!factors.empty())
    json.member("p10", quantile(factors, 0.1))
        .member("median", quantile(factors, 0.5))
        .member("p90", quantile(factors, 0.9));
  json.end_object();
}

// One line for each kind of held-out data, one column for each learner.
std::string learners_markdown(std::span<const LearnerScores> learners) {
  std::string text = "\n## Learners of the residuals: RMSPE\n\n| |";
  for (const LearnerScores& learner_scores : learners) text += fmt::format(" {} |", name_of(learner_scores.learner));
  text += "\n|---|";
  for (std::size_t i = 0; i < learners.size(); ++i) text += "---|";
  text += "\n";
  for (std::size_t row = 0; row < learners.front().scores.size(); ++row) {
    text += fmt::format("| {} |", learners.front().scores[row].name);
    for (const LearnerScores& learner_scores : learners) {
      const Score& score = learner_scores.scores[row].score;
      text += score.cases > 0 ? fmt::format(" {:.1f} % |", 100 * score.rmspe) : std::string(" no cases |");
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string evaluation_markdown(const Evaluation& evaluation) {
  std::string text = "# Accuracy of predictions on held-out data\n";
  if (evaluation.learner != Learner::boosting)
    text += fmt::format("\nLearner of the residuals: {}.\n", name_of(evaluation.learner));
  fmt::format_to(std::back_inserter(text),
                 "\nRepeated measurements of operations ({}) differ by {:.1f} % in energy and {:.1f} % in time.\n",
                 evaluation.operation_noise.operations, 100 * evaluation.operation_noise.energy,
                 100 * evaluation.operation_noise.time);
  fmt::format_to(std::back_inserter(text),
                 "Repeated measurements of network settings ({}) differ by {:.1f} % in energy and {:.1f} % in time.\n",
                 evaluation.network_noise.operations, 100 * evaluation.network_noise.energy,
                 100 * evaluation.network_noise.time);
  if (evaluation.disturbed_settings > 0) {
    fmt::format_to(std::back_inserter(text),
                   "{} network settings waited, or may have waited, for a busy host: they are excluded from training "
                   "and evaluation.\n",
                   evaluation.disturbed_settings);
  }
  if (!evaluation.excluded_settings.empty()) {
    fmt::format_to(std::back_inserter(text),
                   "Warning: {} settings contain unknown operations, so their predictions would be lower bounds: "
                   "they are excluded from training and evaluation ({}{}).\n",
                   evaluation.excluded_settings.size(), evaluation.excluded_settings.front(),
                   evaluation.excluded_settings.size() > 1 ? ", ..." : "");
  }
  if (!evaluation.held_out_networks.empty())
    write_table(text, "Networks of held-out families", evaluation.held_out_networks, true);
  write_table(text, "Networks, leave-one-family-out", evaluation.networks, true);
  if (!evaluation.layers.empty()) {
    write_table(text, "Times of operations within networks, leave-one-family-out", evaluation.layers, false);
    fmt::format_to(std::back_inserter(text), "\n90 % are within a factor of {:.2f}.\n",
                   evaluation.layer_error_factor.value_or(0));
  }
  write_table(text, "Networks, from operations alone", evaluation.operations_only_scores, false);
  if (!evaluation.larger_network_scores.empty())
    write_table(text, "Networks larger than those in the training data", evaluation.larger_network_scores, false);
  write_table(text, "Operations, random folds of distinct operations", evaluation.operations, false);
  write_table(text, "Operations larger than those in the training data", evaluation.larger_operation_scores, false);
  if (!evaluation.learners.empty()) text += learners_markdown(evaluation.learners);
  if (evaluation.study) write_study_evaluation(text, *evaluation.study);
  return text;
}

std::string evaluation_json(const Evaluation& evaluation) {
  formats::JsonWriter json;
  json.begin_object().member("schema", "joulemap.evaluation/1").member("learner", name_of(evaluation.learner));
  json.key("noise_floor")
      .begin_object()
      .member("operations", static_cast<std::uint64_t>(evaluation.operation_noise.operations));
  json.member("energy", evaluation.operation_noise.energy).member("time", evaluation.operation_noise.time).end_object();
  json.key("network_noise_floor")
      .begin_object()
      .member("settings", static_cast<std::uint64_t>(evaluation.network_noise.operations));
  json.member("energy", evaluation.network_noise.energy).member("time", evaluation.network_noise.time).end_object();
  json.member("disturbed_settings", static_cast<std::uint64_t>(evaluation.disturbed_settings));
  json.key("unknown_settings").begin_array();
  for (const std::string& setting : evaluation.excluded_settings) json.value(setting);
  json.end_array();
  write_scores(json, "held_out_networks", evaluation.held_out_networks);
  write_scores(json, "networks", evaluation.networks);
  write_scores(json, "times_within_networks", evaluation.layers);
  json.member("times_within_networks_factor", evaluation.layer_error_factor);
  write_scores(json, "networks_by_operations_alone", evaluation.operations_only_scores);
  write_scores(json, "larger_networks", evaluation.larger_network_scores);
  write_scores(json, "operations", evaluation.operations);
  write_scores(json, "larger_operations", evaluation.larger_operation_scores);
  write_additivity(json, evaluation.operations_only_cases);
  if (!evaluation.learners.empty()) write_learners(json, evaluation.learners);
  if (evaluation.study) write_study_evaluation(json, *evaluation.study);
  json.end_object();
  return std::move(json).text();
}

std::string predictions_csv(const Evaluation& evaluation) {
  std::string text = formats::csv_line({"split", "key", "predicted_j", "low_j", "high_j"});
  const auto number = [](double value) { return fmt::format("{:.6g}", value); };
  for (const NetworkCase& network_case : evaluation.network_cases) {
    text += formats::csv_line({"network-family", network_case.setting, number(network_case.predicted_j),
                               number(network_case.low_j), number(network_case.high_j)});
  }
  for (const OperationCase& operation_case : evaluation.operation_cases) {
    text += formats::csv_line({"random", operation_case.key, number(operation_case.predicted), "", ""});
  }
  return text;
}

}  // namespace joulemap::predict

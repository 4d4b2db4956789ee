// SPDX-License-Identifier: Apache-2.0
#include "predict/evaluation/study_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "predict/fit/table.h"
#include "predict/model/operation_model.h"
#include "statistics/random.h"

namespace joulemap::predict {
namespace {

constexpr unsigned kRandomSeed = 7;
constexpr std::size_t kCrossValidationFoldCount = 5;
constexpr std::array<std::string_view, 5> kStudyOperationColumns = {"id", "kind", "parameters", "dtype", "pass"};
constexpr std::array<std::string_view, 4> kStudySettingColumns = {"network", "batch", "size", "operations"};

// RMSPE in percent: for each kind the best of the study's three methods. Dense, convolution and pooling are the values
// of NeuralPower (table in the study's section "Evaluation"); "instances" is the study's random forest, "vgg" is from
// its text.
constexpr std::array<std::pair<std::string_view, double>, 15> kPublishedRmspe_percent = {{{"dense", 7.08},
                                                                                          {"convolution", 10.23},
                                                                                          {"pooling", 7.37},
                                                                                          {"input", 11.9},
                                                                                          {"padding", 21.2},
                                                                                          {"normalization", 13.06},
                                                                                          {"activation", 13.1},
                                                                                          {"rescaling", 9.2},
                                                                                          {"reshape", 20.7},
                                                                                          {"dropout", 9.6},
                                                                                          {"add", 8.7},
                                                                                          {"multiply", 11.3},
                                                                                          {"concatenate", 9.6},
                                                                                          {"instances", 12.26},
                                                                                          {"vgg", 4.8}}};

using OperationKeys = std::set<std::string, std::less<>>;
using EnergyByOperationKey = std::map<std::string, double, std::less<>>;

Result<std::vector<std::pair<std::size_t, std::size_t>>> parse_instance_layers(std::string_view text,
                                                                               std::size_t operations) {
  std::vector<std::pair<std::size_t, std::size_t>> layers;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    std::size_t index = 0;
    std::size_t count = 0;
    const char* const end = word.data() + word.size();
    const auto [colon, parse_error] = std::from_chars(word.data(), end, index);
    const bool is_key_count_pair = parse_error == std::errc() && colon != end && *colon == ':';
    if (is_key_count_pair && std::from_chars(colon + 1, end, count).ptr != end) count = 0;
    if (count == 0 || index >= operations) {
      return Error{ErrorCode::malformed, fmt::format("\"{}\" is not an operation of the seed's list", word), ""};
    }
    layers.emplace_back(index, count);
  }
  return layers;
}

struct MeasuredOperationIndex {
  const FitData& data;
  std::map<std::string_view, const MeasuredOperation*, std::less<>> operation_by_key;

  explicit MeasuredOperationIndex(const FitData& fit_data) : data(fit_data) {
    for (const MeasuredOperation& row : fit_data.operations) operation_by_key.emplace(row.key, &row);
  }
  double energy_j(std::string_view key) const { return *operation_by_key.at(key)->energy_j; }
  std::string kind(std::string_view key) const {
    return std::string(name_of(operation_by_key.at(key)->operation.kind));
  }
};

std::string_view kind_of_operation_key(std::string_view key) { return key.substr(0, key.find('|')); }

OperationKeys unmeasured_kinds(const MeasuredOperationIndex& measured, const StudyTable& seed) {
  OperationKeys listed_kinds;
  OperationKeys measured_kinds;
  for (const std::string& key : seed.keys) {
    listed_kinds.emplace(kind_of_operation_key(key));
    if (measured.operation_by_key.contains(key)) measured_kinds.emplace(kind_of_operation_key(key));
  }
  for (const std::string& kind : measured_kinds) listed_kinds.erase(kind);
  return listed_kinds;
}

// Predicted energies of the operations `requested_keys`, in J, by a model fitted to the rows that `is_in_training_set`
// selects.
template <class IsInTrainingSet>
Result<EnergyByOperationKey> predict_energies(const MeasuredOperationIndex& measured,
                                              const OperationKeys& requested_keys,
                                              const IsInTrainingSet& is_in_training_set) {
  std::vector<MeasuredOperation> rows;
  for (const MeasuredOperation& row : measured.data.operations) {
    if (is_in_training_set(row.key)) rows.push_back(row);
  }
  const Result<OperationModel> model = fit_operation_model(rows, measured.data.datasheet, measured.data.learner);
  if (!model) return model.error();
  EnergyByOperationKey energies;
  for (const std::string& key : requested_keys) {
    const MeasuredOperation& row = *measured.operation_by_key.at(key);
    energies[key] = estimate(*model, row.operation, {row.is_cache_cold, false}).energy_j;
  }
  return energies;
}

// Assigns a fold below kCrossValidationFoldCount to each case: equal counts, in a deterministic random order.
std::vector<std::size_t> assign_folds(std::size_t count) {
  std::vector<std::size_t> folds(count);
  for (std::size_t index = 0; index < count; ++index) folds[index] = index % kCrossValidationFoldCount;
  statistics::Random(kRandomSeed).shuffle(folds.begin(), folds.end());
  return folds;
}

class StudyScorer {
 public:
  StudyScorer(const MeasuredOperationIndex& measured, const StudyTable& seed,
              std::vector<const StudyInstance*> instances, bool trains_on_all_operations)
      : measured_(measured),
        study_table_(seed),
        instances_(std::move(instances)),
        trains_on_all_operations_(trains_on_all_operations) {
    for (const StudyInstance* instance : instances_) {
      const OperationKeys keys = operation_keys_of_instance(*instance);
      all_layer_keys_.insert(keys.begin(), keys.end());
    }
  }

  Result<StudyScores> compute_scores() {
    if (const Status scoring_status = score_instances(); !scoring_status) return scoring_status.error();
    if (const Status scoring_status = score_distinct_layers(); !scoring_status) return scoring_status.error();
    StudyScores scores;
    scores.training_data =
        trains_on_all_operations_ ? "the seed's layers and all other operations" : "the seed's layers alone";
    scores.instances = score_predictions(instance_cases_);
    scores.vgg_instances = score_predictions(select_vgg_cases(instance_cases_));
    scores.unseen_instances = score_predictions(unseen_instance_cases_);
    scores.unseen_vgg_instances = score_predictions(select_vgg_cases(unseen_instance_cases_));
    scores.layers = score_predictions_by_kind(layer_cases_);
    scores.unseen_layers = score_predictions_by_kind(unseen_layer_cases_);
    scores.distinct_layers = score_predictions_by_kind(distinct_layer_cases_);
    return scores;
  }

 private:
  OperationKeys operation_keys_of_instance(const StudyInstance& instance) const {
    OperationKeys keys;
    for (const auto& [index, count] : instance.layers) keys.insert(study_table_.keys[index]);
    return keys;
  }
  OperationCase make_operation_case(const std::string& key, double predicted_j) const {
    return {key, measured_.kind(key), measured_.energy_j(key), predicted_j};
  }
  bool is_training_key(const std::string& key) const {
    return trains_on_all_operations_ || all_layer_keys_.contains(key);
  }

  Status score_instances() {
    const std::vector<std::size_t> folds = assign_folds(instances_.size());
    for (std::size_t fold = 0; fold < kCrossValidationFoldCount; ++fold) {
      OperationKeys training_keys;
      OperationKeys tested;
      for (std::size_t index = 0; index < instances_.size(); ++index) {
        const OperationKeys keys = operation_keys_of_instance(*instances_[index]);
        (folds[index] == fold ? tested : training_keys).insert(keys.begin(), keys.end());
      }
      OperationKeys unseen_keys;
      std::set_difference(tested.begin(), tested.end(), training_keys.begin(), training_keys.end(),
                          std::inserter(unseen_keys, unseen_keys.end()));
      const Result<EnergyByOperationKey> energies = predict_energies_excluding(unseen_keys, tested);
      if (!energies) return energies.error();
      const Result<EnergyByOperationKey> unseen_energies = predict_energies_excluding(tested, tested);
      if (!unseen_energies) return unseen_energies.error();
      for (const std::string& key : unseen_keys)
        unseen_layer_cases_.push_back(make_operation_case(key, energies->at(key)));
      for (std::size_t index = 0; index < instances_.size(); ++index) {
        if (folds[index] != fold) continue;
        add_layer_cases(*instances_[index], *energies);
        instance_cases_.push_back(sum_instance_energy(*instances_[index], *energies));
        unseen_instance_cases_.push_back(sum_instance_energy(*instances_[index], *unseen_energies));
      }
    }
    return Done{};
  }

  Result<EnergyByOperationKey> predict_energies_excluding(const OperationKeys& exclusions,
                                                          const OperationKeys& requested_keys) const {
    return predict_energies(measured_, requested_keys,
                            [&](const std::string& key) { return is_training_key(key) && !exclusions.contains(key); });
  }

  void add_layer_cases(const StudyInstance& instance, const EnergyByOperationKey& energies) {
    for (const auto& [index, count] : instance.layers)
      layer_cases_.insert(layer_cases_.end(), count,
                          make_operation_case(study_table_.keys[index], energies.at(study_table_.keys[index])));
  }

  OperationCase sum_instance_energy(const StudyInstance& instance, const EnergyByOperationKey& energies) const {
    OperationCase sum{instance.name, "instance", 0, 0};
    for (const auto& [index, count] : instance.layers) {
      sum.measured += static_cast<double>(count) * measured_.energy_j(study_table_.keys[index]);
      sum.predicted += static_cast<double>(count) * energies.at(study_table_.keys[index]);
    }
    return sum;
  }

  static std::vector<OperationCase> select_vgg_cases(std::span<const OperationCase> sums) {
    std::vector<OperationCase> vgg_cases;
    std::copy_if(sums.begin(), sums.end(), std::back_inserter(vgg_cases),
                 [](const OperationCase& sum) { return sum.key.starts_with("VGG"); });
    return vgg_cases;
  }

  Status score_distinct_layers() {
    const std::vector<std::string> keys(all_layer_keys_.begin(), all_layer_keys_.end());
    const std::vector<std::size_t> folds = assign_folds(keys.size());
    for (std::size_t fold = 0; fold < kCrossValidationFoldCount; ++fold) {
      OperationKeys tested;
      for (std::size_t index = 0; index < keys.size(); ++index) {
        if (folds[index] == fold) tested.insert(keys[index]);
      }
      const Result<EnergyByOperationKey> energies = predict_energies(
          measured_, tested, [&](const std::string& key) { return is_training_key(key) && !tested.contains(key); });
      if (!energies) return energies.error();
      for (const auto& [key, predicted_j] : *energies)
        distinct_layer_cases_.push_back(make_operation_case(key, predicted_j));
    }
    return Done{};
  }

  const MeasuredOperationIndex& measured_;
  const StudyTable& study_table_;
  std::vector<const StudyInstance*> instances_;
  bool trains_on_all_operations_;
  OperationKeys all_layer_keys_;  // keys of the layers of all instances
  std::vector<OperationCase> instance_cases_;
  std::vector<OperationCase> unseen_instance_cases_;
  std::vector<OperationCase> layer_cases_;
  std::vector<OperationCase> unseen_layer_cases_;
  std::vector<OperationCase> distinct_layer_cases_;
};

}  // namespace

std::optional<double> published_rmspe(std::string_view name) {
  for (const auto& [published_name, percent] : kPublishedRmspe_percent) {
    if (published_name == name) return percent / 100;
  }
  return std::nullopt;
}

Result<StudyTable> read_study_tables(std::string_view operations, std::string_view settings) {
  const Result<CsvTable> operation_table = read_table(operations, kStudyOperationColumns);
  if (!operation_table) return operation_table.error();
  StudyTable seed;
  for (const formats::CsvRecord& record : operation_table->records) {
    const auto text = [&](std::string_view name) -> const std::string& {
      return operation_table->columns.text(record, name);
    };
    // The trailing 0 is `is_cache_cold`, which the collector writes as a number.
    seed.keys.push_back(fmt::format("{}|{}|{}|{}|0", text("kind"), text("parameters"), text("dtype"), text("pass")));
  }
  const Result<CsvTable> lines = read_table(settings, kStudySettingColumns);
  if (!lines) return lines.error();
  for (const formats::CsvRecord& record : lines->records) {
    const auto text = [&](std::string_view name) -> const std::string& { return lines->columns.text(record, name); };
    auto layers = parse_instance_layers(text("operations"), seed.keys.size());
    if (!layers) return std::move(layers).error();
    seed.instances.push_back(
        {text("network"), fmt::format("{} {}x{}", text("network"), text("batch"), text("size")), std::move(*layers)});
  }
  return seed;
}

Result<std::optional<StudyEvaluation>> evaluate_study_protocol(const FitData& data, const StudyTable& study_table) {
  const MeasuredOperationIndex measured(data);
  const OperationKeys unmeasured_keys = unmeasured_kinds(measured, study_table);
  StudyTable seed = study_table;
  for (StudyInstance& instance : seed.instances) {
    std::erase_if(instance.layers, [&](const auto& layer) {
      return unmeasured_keys.contains(kind_of_operation_key(seed.keys[layer.first]));
    });
  }
  std::vector<const StudyInstance*> complete_instances;
  for (const StudyInstance& instance : seed.instances) {
    const bool is_complete = std::all_of(instance.layers.begin(), instance.layers.end(), [&](const auto& layer) {
      return measured.operation_by_key.contains(seed.keys[layer.first]);
    });
    if (is_complete && !instance.layers.empty()) complete_instances.push_back(&instance);
  }
  if (complete_instances.size() < kCrossValidationFoldCount) return std::optional<StudyEvaluation>();
  StudyEvaluation protocol;
  protocol.instances = complete_instances.size();
  protocol.incomplete_instances = seed.instances.size() - complete_instances.size();
  protocol.unmeasured_kinds.assign(unmeasured_keys.begin(), unmeasured_keys.end());
  for (const bool trains_on_all_operations : {false, true}) {
    Result<StudyScores> scores =
        StudyScorer(measured, seed, complete_instances, trains_on_all_operations).compute_scores();
    if (!scores) return std::move(scores).error();
    protocol.scores.push_back(std::move(*scores));
  }
  return std::optional(std::move(protocol));
}

}  // namespace joulemap::predict

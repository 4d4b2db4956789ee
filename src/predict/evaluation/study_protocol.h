// SPDX-License-Identifier: Apache-2.0
//
// The evaluation protocol of the published study that Joulemap is based on (in code and messages: "the seed"), applied
// to our own measurements: Keras networks at three batches and three image sizes (data/seed), with every layer measured
// separately. Five-fold cross-validation over instances (network, batch, size). The energy of an instance is the sum
// over its layers. Each instance is predicted once. Pure; takes some tens of seconds.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "predict/evaluation/score.h"
#include "predict/fit/fitting.h"

namespace joulemap::predict {

struct StudyInstance {
  std::string network;
  std::string name;                                         // "VGG16 16x300"
  std::vector<std::pair<std::size_t, std::size_t>> layers;  // index into StudyTable::keys, and count
};

struct StudyTable {
  std::vector<std::string> keys;  // keys of the layers, as in MeasuredOperation
  std::vector<StudyInstance> instances;
};

// Texts of operations.csv and settings.csv (docs/reference/prediction-data.md).
Result<StudyTable> read_study_tables(std::string_view operations, std::string_view settings);

struct StudyScores {
  std::string training_data;
  Score instances;         // of sums over the layers of an instance
  Score vgg_instances;     // VGG instances only
  Score unseen_instances;  // trained without any layer of the predicted instances
  Score unseen_vgg_instances;
  std::vector<NamedScore> layers;         // every layer of each instance, by kind, whether in the training data or not
  std::vector<NamedScore> unseen_layers;  // distinct layers that occur in no training instance
  std::vector<NamedScore> distinct_layers;  // five-fold cross-validation over distinct layers
};

struct StudyEvaluation {
  std::size_t instances = 0;
  std::size_t incomplete_instances = 0;  // number of instances that were excluded because a layer was not measured
  // Kinds of layers that were never measured; the sums exclude such layers.
  std::vector<std::string> unmeasured_kinds;
  std::vector<StudyScores> scores;  // trained on the study's layers alone, and on all operations
};

// The best published RMSPE, as a fraction, of a kind of layer, of instances ("instances") or of VGG ("vgg"): from the
// study or, if better, from NeuralPower. Empty if nothing was published.
std::optional<double> published_rmspe(std::string_view name);

// Empty if fewer than five instances have all of their layers measured.
Result<std::optional<StudyEvaluation>> evaluate_study_protocol(const FitData& data, const StudyTable& study_table);

}  // namespace joulemap::predict

// SPDX-License-Identifier: Apache-2.0
//
// The evaluation protocol of the study that Joulemap is based on, on our own measurements: Keras networks at three
// batches and three sizes (data/seed), with every layer measured separately. Five-fold cross-validation over instances
// (network, batch, size); the energy of an instance is the sum over its layers. Each instance is predicted once. Pure;
// takes some tens of seconds of one core.
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
  std::vector<std::pair<std::size_t, std::size_t>> layers;  // index of a key, and count
};

struct StudyTable {
  std::vector<std::string> keys;  // as in MeasuredOperation
  std::vector<StudyInstance> instances;
};

// Texts of operations.csv and settings.csv (docs/prediction-data.md).
Result<StudyTable> read_study_tables(std::string_view operations, std::string_view settings);

struct StudyScores {
  std::string training_data;
  Score instances;         // sums over layers
  Score vgg;               // VGG instances only
  Score unseen_instances;  // trained without any layer of the predicted instances
  Score unseen_vgg;
  std::vector<NamedScore> layers;  // every layer of an instance, by kind, whether in the training data or not
  std::vector<NamedScore> unseen;  // distinct layers that occur in no training instance
  std::vector<NamedScore> folds;   // five-fold cross-validation over distinct layers
};

struct StudyEvaluation {
  std::size_t instances = 0;
  std::size_t incomplete = 0;  // excluded instances with an unmeasured layer
  // Kinds without a measured layer; the scores exclude them.
  std::vector<std::string> unmeasured;
  std::vector<StudyScores> scores;  // trained on the seed's layers alone, and with all other operations
};

// The best published RMSPE, in percent, of a kind of layer, of instances ("instances") or of VGG ("vgg"): from the
// study's own table, or NeuralPower's if that is better. Empty if nothing was published.
std::optional<double> published_rmspe(std::string_view name);

// Empty if too few instances are complete.
Result<std::optional<StudyEvaluation>> evaluate_study_protocol(const FitData& data, const StudyTable& seed);

}  // namespace joulemap::predict

// SPDX-License-Identifier: Apache-2.0
//
// The protocol of the study that Joulemap goes back to, on our own measurements: Keras' networks at three batches and three
// sizes (data/seed), every layer measured by itself, four of five instances (network, batch, size) to learn from, the
// fifth to predict; the energy of an instance is the sum over its layers. Each instance is predicted once. Pure; some
// tens of seconds of one core.
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

struct SeedInstance {
  std::string network;
  std::string name;                                         // "VGG16 16x300"
  std::vector<std::pair<std::size_t, std::size_t>> layers;  // index of a key, how often
};

struct SeedTable {
  std::vector<std::string> keys;  // as MeasuredOperation has them
  std::vector<SeedInstance> instances;
};

// Texts of operations.csv and settings.csv (docs/prediction-data.md).
Result<SeedTable> read_seed_tables(std::string_view operations, std::string_view settings);

struct SeedScores {
  std::string learned_from;
  Score instances;         // of sums over layers
  Score vgg;               // of those of VGG
  Score unseen_instances;  // where no layer of an instance that is predicted was learned from
  Score unseen_vgg;
  std::vector<NamedScore> layers;  // every layer of an instance, by kind, whether one like it was learned from or not
  std::vector<NamedScore> unseen;  // distinct layers that are in no instance that was learned from
  std::vector<NamedScore> folds;   // distinct layers in five parts, each predicted by a model of the others
};

struct SeedProtocol {
  std::size_t instances = 0;
  std::size_t incomplete = 0;  // instances with a layer that was not measured: left aside
  // Kinds of which no layer was measured: what is judged is without them.
  std::vector<std::string> unmeasured;
  std::vector<SeedScores> scores;  // by the seed's layers alone, and with all other operations
};

// The best that was published of a kind of layer, of instances ("instances") and of VGG's ("vgg"): the study's own
// table, or NeuralPower's where that is better. Nothing where nothing was.
std::optional<double> published_rmspe(std::string_view name);

// Nothing where too few instances are complete.
Result<std::optional<SeedProtocol>> judge_by_seed_protocol(const FitData& data, const SeedTable& seed);

}  // namespace joulemap::predict

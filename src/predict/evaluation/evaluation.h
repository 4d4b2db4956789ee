// SPDX-License-Identifier: Apache-2.0
//
// How good predictions are on what they were not fitted to: families of networks left out, sizes beyond those measured,
// operations alone to whole networks. Pure; minutes of one core for all of it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "predict/evaluation/score.h"
#include "predict/evaluation/seed_protocol.h"
#include "predict/fit/fitting.h"

namespace joulemap::predict {

// One network at one setting, predicted by a model that saw none of its family.
struct NetworkCase {
  std::string setting;
  std::string family;
  bool training = false;
  double measured_j = 0;
  double predicted_j = 0;
  double measured_s = 0;
  double predicted_s = 0;
  double waiting = 0;  // share of the predicted time in which the GPU waits for the host
  double low_j = 0;
  double high_j = 0;
  double busy = 0;  // share of the measured time in which the GPU computed, as far as it was profiled
};

Score score(std::span<const NetworkCase> cases);

struct LeftOutCases {
  std::vector<NetworkCase> networks;
  std::vector<OperationCase> layers;  // seconds of operations within them: of their energy alone nobody knows
};

inline constexpr int kFoldsOfIntervals = 6;
// Families in so many groups, each predicted by a model of the others. The host's speed is that of the run, told by how
// long a launch took in it.
Result<LeftOutCases> families_left_out(const FitData& data, int folds);

// As wide as 90 % of such cases need: of networks each family counts the same.
void set_widths(NetworkModel& model, std::span<const NetworkCase> cases);
void set_layer_width(NetworkModel& model, std::span<const OperationCase> cases);
void set_intervals(std::span<NetworkCase> cases, const NetworkModel& model);

struct Evaluation {
  NoiseFloor floor;
  NoiseFloor network_floor;
  std::vector<NamedScore> networks;         // all, by pass, bound by the GPU or the host
  std::vector<NamedScore> layers;           // times of operations within them, by kind
  std::optional<double> layer_factor;       // within which 90 % of those lie
  std::vector<NamedScore> operations;       // random folds of distinct rows, by kind
  std::vector<NamedScore> larger;           // operations beyond the sizes learned from, by kind
  std::vector<NamedScore> alone;            // operations alone to whole networks
  std::vector<NamedScore> larger_networks;  // than those learned from, as are their operations
  std::vector<NamedScore> held_out;         // networks that nothing is ever fitted to
  std::size_t disturbed = 0;                // settings that are not judged: the host was not left alone
  std::vector<std::string> unknown;         // settings that are not judged: operations of theirs are not known
  std::optional<SeedProtocol> seed;         // where its layers were measured
  std::vector<NetworkCase> network_cases;
  std::vector<OperationCase> operation_cases;
};
Result<Evaluation> evaluate(const FitTables& tables, int folds);

std::string evaluation_markdown(const Evaluation& evaluation);
std::string evaluation_json(const Evaluation& evaluation);
// "split,key,predicted_j,low_j,high_j"
std::string predictions_csv(const Evaluation& evaluation);

}  // namespace joulemap::predict

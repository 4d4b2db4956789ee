// SPDX-License-Identifier: Apache-2.0
//
// Evaluates predictions on data outside of the fit: held-out families of networks, sizes beyond the training range, and
// networks predicted from operations only. Pure; takes minutes of one core in total.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "predict/evaluation/score.h"
#include "predict/evaluation/study_protocol.h"
#include "predict/fit/fitting.h"

namespace joulemap::predict {

// One network at one setting, predicted by a model that was fitted without its family.
struct NetworkCase {
  std::string setting;
  std::string family;
  bool training = false;
  double measured_j = 0;
  double predicted_j = 0;
  double measured_s = 0;
  double predicted_s = 0;
  double waiting = 0;  // fraction of the predicted time in which the GPU waits for the host
  double low_j = 0;
  double high_j = 0;
  double busy = 0;  // fraction of the measured time in which the GPU computed; 0 if not profiled
};

Score score(std::span<const NetworkCase> cases);

struct HeldOutCases {
  std::vector<NetworkCase> networks;
  std::vector<OperationCase> layers;  // times of operations within them, s; their energy cannot be measured separately
};

inline constexpr int kIntervalFolds = 6;
// Cross-validation with families in `folds` groups, each predicted by a model of the others. The host factor is that of
// the run, from its launch times.
Result<HeldOutCases> cross_validate_families(const FitData& data, int folds, const ProgressCallback& on_progress = {});

// Sets widths that cover 90 % of the cases; for networks each family has the same weight.
void set_interval_widths(NetworkModel& model, std::span<const NetworkCase> cases);
void set_layer_interval_width(NetworkModel& model, std::span<const OperationCase> cases);
void set_intervals(std::span<NetworkCase> cases, const NetworkModel& model);

struct Evaluation {
  NoiseFloor operation_noise;
  NoiseFloor network_noise;
  std::vector<NamedScore> networks;          // all, by pass, GPU-bound or host-bound
  std::vector<NamedScore> layers;            // times of operations within them, by kind
  std::optional<double> layer_error_factor;  // factor of error that covers 90 % of those
  std::vector<NamedScore> operations;        // random folds of distinct rows, by kind
  std::vector<NamedScore> larger;            // operations beyond the sizes of the fit, by kind
  std::vector<NamedScore> operations_only;   // whole networks, from a fit to operations only
  std::vector<NamedScore> larger_networks;   // larger, with larger operations, than those of the fit
  std::vector<NamedScore> held_out;          // networks that are never part of a fit
  std::size_t disturbed = 0;                 // excluded settings: the host was disturbed
  std::vector<std::string> unknown;          // excluded settings: they contain unknown operations
  std::optional<StudyEvaluation> seed;       // if its layers were measured
  std::vector<NetworkCase> network_cases;
  std::vector<OperationCase> operation_cases;
};
Result<Evaluation> evaluate(const FitTables& tables, int folds, const ProgressCallback& on_progress = {});

std::string evaluation_markdown(const Evaluation& evaluation);
std::string evaluation_json(const Evaluation& evaluation);
// "split,key,predicted_j,low_j,high_j"
std::string predictions_csv(const Evaluation& evaluation);

}  // namespace joulemap::predict

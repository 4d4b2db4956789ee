// SPDX-License-Identifier: Apache-2.0
//
// Evaluates predictions on data outside of the fit: held-out families of networks, sizes beyond the training range, and
// networks whose operations were measured in isolation only. Pure; takes minutes on up to four threads
// (parallel_for.h).
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
  double host_wait_fraction = 0;  // of the predicted time: while the GPU waits for the host
  double low_j = 0;
  double high_j = 0;
  double gpu_busy_fraction = 0;  // of the measured time; 0 if not profiled
  double operations_j = 0;       // sum of the predicted energies of its operations, each alone

  // Measured energy of the network / energy of its operations alone; 1: energies of operations add up.
  double additivity_factor() const { return operations_j > 0 ? measured_j / operations_j : 0; }
};

Score score_predictions(std::span<const NetworkCase> cases);

struct HeldOutCases {
  std::vector<NetworkCase> networks;
  std::vector<OperationCase> layers;  // times of operations inside these networks, s; their energy is not measurable
};

inline constexpr int kIntervalFoldCount = 6;
// Cross-validation: families of networks are divided into `folds` groups, and a model fitted to the other groups
// predicts each. Predictions use the host slowdown that was measured in the same run (MachineCorrection::host_factor).
Result<HeldOutCases> cross_validate_families(const FitData& data, int folds, const ProgressCallback& on_progress = {});

// Set the interval widths of the model so that they cover 90 % of the cases. For networks each family has the same
// weight.
void set_interval_log_half_widths(NetworkModel& model, std::span<const NetworkCase> cases);
void set_layer_log_half_width(NetworkModel& model, std::span<const OperationCase> cases);
void set_case_intervals(std::span<NetworkCase> cases, const NetworkModel& model);

// Scores of one learner of residuals (learned_residual.h) by kind of held-out data.
struct LearnerScores {
  Learner learner = Learner::boosting;
  std::vector<NamedScore> scores;
};

struct Evaluation {
  Learner learner = Learner::boosting;
  NoiseFloor operation_noise;
  NoiseFloor network_noise;
  std::vector<NamedScore> networks;          // of held-out families, by pass: all, GPU-bound, host-bound
  std::vector<NamedScore> layers;            // times of operations inside held-out networks, by kind
  std::optional<double> layer_error_factor;  // error factor that covers 90 % of those times; empty without layers.csv
  std::vector<NamedScore> operations;        // random folds of distinct rows, by kind
  std::vector<NamedScore> larger_operation_scores;  // operations beyond the sizes of the fit, by kind
  std::vector<NamedScore> operations_only_scores;   // whole networks; their operations were measured in isolation only
  std::vector<NamedScore> larger_network_scores;    // networks larger than those of the fit, with larger operations
  std::vector<NamedScore> held_out_networks;        // networks that are never part of a fit
  std::size_t disturbed_settings = 0;               // excluded settings: the host was disturbed
  std::vector<std::string> excluded_settings;       // excluded settings: they contain unknown operations
  std::optional<StudyEvaluation> study;  // protocol of the study; empty if too few of its layers were measured
  std::vector<LearnerScores> learners;   // comparison of learners, if requested
  std::vector<NetworkCase> network_cases;
  std::vector<NetworkCase> operations_only_cases;
  std::vector<OperationCase> operation_cases;
};

struct EvaluationOptions {
  int folds = kIntervalFoldCount;
  bool compares_learners = false;  // takes about four times as long
};
Result<Evaluation> evaluate(const FitTables& tables, const EvaluationOptions& options,
                            const ProgressCallback& on_progress = {});

std::string evaluation_markdown(const Evaluation& evaluation);
std::string evaluation_json(const Evaluation& evaluation);
// "split,key,predicted_j,low_j,high_j"
std::string predictions_csv(const Evaluation& evaluation);

}  // namespace joulemap::predict

// SPDX-License-Identifier: Apache-2.0
#include "predict/evaluation/evaluation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/quadrature.h"
#include "statistics/random.h"

namespace joulemap::predict {
namespace {

constexpr unsigned kRandomSeed = 11;
constexpr int kOperationFoldCount = 5;
// Fits after the folds: larger operations, operations only, larger networks, held out.
constexpr int kFitCountAfterCrossValidation = 4;
// A step whose GPU is busy for a smaller fraction of the time is slowed down by the host.
constexpr double kMinGpuBoundFraction = 0.9;
// Fraction of the largest operations of a kind (or networks of a pass) that the "larger sizes" splits hold out.
constexpr double kLargestHeldOutFraction = 0.2;
// The logarithmic half width of an interval is proportional to
// sqrt(kModelErrorScale^2 + (kHostErrorScale x waiting)^2): the model's error and that of the host, where the GPU waits
// for it. The factor is set to cover 90 % of held-out networks.
constexpr double kModelErrorScale = 0.10;
constexpr double kHostErrorScale = 0.10;

double unscaled_log_half_width(const NetworkCase& network_case) {
  return add_in_quadrature(kModelErrorScale, kHostErrorScale * network_case.host_wait_fraction);
}

// Quantile `share` of |log(measured / predicted)| / unscaled_log_half_width() over inference or training cases. Each
// family has the same weight, whatever its number of cases. 3 without cases.
double family_weighted_error_quantile(std::span<const NetworkCase> cases, bool training, double share) {
  std::map<std::string, double, std::less<>> sizes;
  for (const NetworkCase& network_case : cases) sizes[network_case.family] += network_case.training == training ? 1 : 0;
  std::vector<std::pair<double, double>> scores;
  double total_weight = 0;
  for (const NetworkCase& network_case : cases) {
    if (network_case.training != training) continue;
    const double weight = 1 / sizes[network_case.family];
    scores.emplace_back(
        std::fabs(std::log(network_case.measured_j / network_case.predicted_j)) / unscaled_log_half_width(network_case),
        weight);
    total_weight += weight;
  }
  std::sort(scores.begin(), scores.end());
  double passed_weight = 0;
  for (const auto& [value, weight] : scores) {
    passed_weight += weight;
    if (passed_weight >= share * total_weight) return value;
  }
  return scores.empty() ? 3 : scores.back().first;
}

std::map<std::string, int, std::less<>> assign_network_folds(const FitData& data, int folds) {
  std::set<std::string, std::less<>> families;
  for (const MeasuredNetwork& network : data.networks.networks) families.insert(network.family);
  std::vector<std::string> order(families.begin(), families.end());
  statistics::Random(kRandomSeed).shuffle(order.begin(), order.end());
  std::map<std::string, int, std::less<>> fold;
  for (std::size_t index = 0; index < order.size(); ++index) fold[order[index]] = static_cast<int>(index) % folds;
  return fold;
}

// With the idle power of the GPU on which the network was measured.
double energy_of_separate_operations_j(const DeviceProfile& profile, const NetworkOperationSums& sums,
                                       const MachineCorrection& machine) {
  const double above_idle_j = std::accumulate(sums.above_idle_j.begin(), sums.above_idle_j.end(), 0.0);
  return above_idle_j + (profile.network_model.idle_w + machine.idle_offset_w) * sums.gpu_s;
}

NetworkCase make_network_case(const DeviceProfile& profile, const NetworkObservation& row) {
  const MeasuredNetwork& network = *row.network;
  const NetworkEstimate network_estimate = estimate_network(profile.network_model, row.sums, network.machine);
  return {network.setting,
          network.family,
          network.training,
          network.energy_j,
          network_estimate.energy_j,
          network.time_s,
          network_estimate.time_s,
          std::max(0.0, 1 - network_estimate.gpu_s / network_estimate.time_s),
          0,
          0,
          network.busy_s / network.time_s,
          energy_of_separate_operations_j(profile, row.sums, network.machine)};
}

std::vector<NetworkCase> make_network_cases(const DeviceProfile& profile, const NetworkTable& table) {
  std::vector<NetworkCase> cases;
  for (const NetworkObservation& row : make_network_observations(table, profile.operation_model, profile.network_model))
    cases.push_back(make_network_case(profile, row));
  return cases;
}

Result<std::vector<OperationCase>> predict_held_out_operations(const FitData& data,
                                                               const std::set<std::string, std::less<>>& keys) {
  std::vector<MeasuredOperation> rows;
  for (const MeasuredOperation& row : data.operations) {
    if (!keys.contains(row.key)) rows.push_back(row);
  }
  const Result<OperationModel> model = fit_operation_model(rows, data.datasheet, data.learner);
  if (!model) return model.error();
  std::vector<OperationCase> cases;
  for (const MeasuredOperation& row : data.operations) {
    if (!keys.contains(row.key)) continue;
    cases.push_back({row.key, std::string(name_of(row.operation.kind)), *row.energy_j,
                     estimate(*model, row.operation, {row.is_cache_cold, false}).energy_j});
  }
  return cases;
}

// Each row is predicted by a fit to the other random folds of distinct operations.
Result<std::vector<OperationCase>> cross_validate_operations(const FitData& data, const ProgressCallback& on_progress) {
  statistics::Random random(kRandomSeed);
  std::vector<std::set<std::string, std::less<>>> keys(kOperationFoldCount);
  for (const MeasuredOperation& row : data.operations) keys[random.uniform_below(kOperationFoldCount)].insert(row.key);
  std::vector<OperationCase> cases;
  for (std::size_t number = 0; number < keys.size(); ++number) {
    report_progress(on_progress, static_cast<double>(number) / kOperationFoldCount);
    const Result<std::vector<OperationCase>> held_out_cases = predict_held_out_operations(data, keys[number]);
    if (!held_out_cases) return held_out_cases.error();
    cases.insert(cases.end(), held_out_cases->begin(), held_out_cases->end());
  }
  return cases;
}

std::set<std::string, std::less<>> keys_of_largest_operations(std::span<const MeasuredOperation> operations) {
  std::map<Kind, std::vector<std::pair<double, std::string>>> by_kind;
  for (const MeasuredOperation& row : operations) {
    const OperationWork work = compute_work(row.operation);
    by_kind[row.operation.kind].emplace_back(std::log(work.bytes + 1) + std::log(work.flops + 1), row.key);
  }
  std::set<std::string, std::less<>> keys;
  for (auto& [kind, rows] : by_kind) {
    std::sort(rows.begin(), rows.end());
    for (std::size_t index = static_cast<std::size_t>((1 - kLargestHeldOutFraction) * static_cast<double>(rows.size()));
         index < rows.size(); ++index) {
      keys.insert(rows[index].second);
    }
  }
  return keys;
}

// The 20 % of settings with the most FLOPs, separately for inference and training.
std::set<std::string, std::less<>> largest_network_settings(const NetworkTable& table) {
  std::map<bool, std::vector<std::pair<double, std::string>>> flops_by_pass;
  for (const MeasuredNetwork& network : table.networks) {
    double flops = 0;
    for (const auto& [index, count] : network.operations) flops += count * compute_work(table.operations[index]).flops;
    flops_by_pass[network.training].emplace_back(flops, network.setting);
  }
  std::set<std::string, std::less<>> settings;
  for (auto& [training, settings_with_flops] : flops_by_pass) {
    std::sort(settings_with_flops.begin(), settings_with_flops.end());
    const auto smaller_network_count =
        static_cast<std::size_t>((1 - kLargestHeldOutFraction) * static_cast<double>(settings_with_flops.size()));
    for (std::size_t index = smaller_network_count; index < settings_with_flops.size(); ++index)
      settings.insert(settings_with_flops[index].second);
  }
  return settings;
}

std::vector<NamedScore> score_training_and_inference(std::span<const NetworkCase> cases) {
  std::vector<NamedScore> scores;
  for (const bool training : {false, true}) {
    const std::string pass = training ? "training" : "inference";
    std::vector<NetworkCase> pass_cases;
    std::vector<NetworkCase> gpu;
    std::vector<NetworkCase> host;
    for (const NetworkCase& network_case : cases) {
      if (network_case.training != training) continue;
      pass_cases.push_back(network_case);
      const double busy =
          network_case.gpu_busy_fraction > 0 ? network_case.gpu_busy_fraction : 1 - network_case.host_wait_fraction;
      (busy >= kMinGpuBoundFraction ? gpu : host).push_back(network_case);
    }
    scores.push_back({pass, score_predictions(pass_cases)});
    scores.push_back({pass + ", GPU-bound", score_predictions(gpu)});
    scores.push_back({pass + ", host-bound", score_predictions(host)});
  }
  return scores;
}

Result<LearnerScores> score_learner(const FitData& data, int folds, const ProgressCallback& on_progress) {
  const double fits = folds + kOperationFoldCount + 1;
  LearnerScores scores{data.learner, {}};
  const Result<HeldOutCases> held_out_scores =
      cross_validate_families(data, folds, make_partial_progress_callback(on_progress, 0, folds / fits));
  if (!held_out_scores) return held_out_scores.error();
  for (const bool training : {false, true}) {
    std::vector<NetworkCase> cases = held_out_scores->networks;
    std::erase_if(cases, [training](const NetworkCase& network_case) { return network_case.training != training; });
    scores.scores.push_back({training ? "networks, training" : "networks, inference", score_predictions(cases)});
  }
  const Result<std::vector<OperationCase>> operations = cross_validate_operations(
      data, make_partial_progress_callback(on_progress, folds / fits, (folds + kOperationFoldCount) / fits));
  if (!operations) return operations.error();
  scores.scores.push_back({"operations", score_predictions(*operations)});
  const Result<std::vector<OperationCase>> larger_operation_cases =
      predict_held_out_operations(data, keys_of_largest_operations(data.operations));
  if (!larger_operation_cases) return larger_operation_cases.error();
  scores.scores.push_back({"larger operations", score_predictions(*larger_operation_cases)});
  return scores;
}

Result<std::vector<LearnerScores>> compare_learners(FitData data, int folds, const ProgressCallback& on_progress) {
  std::vector<LearnerScores> learner_scores;
  const auto count = static_cast<double>(kLearnerNames.size());
  for (std::size_t i = 0; i < kLearnerNames.size(); ++i) {
    data.learner = static_cast<Learner>(i);
    const auto finished_learner_count = static_cast<double>(i);
    Result<LearnerScores> scores =
        score_learner(data, folds,
                      make_partial_progress_callback(on_progress, finished_learner_count / count,
                                                     (finished_learner_count + 1) / count));
    if (!scores) return std::move(scores).error();
    learner_scores.push_back(std::move(*scores));
  }
  return learner_scores;
}

// Scores of the largest 20 % of networks, predicted by a fit without them and without the largest 20 % of operations of
// each kind.
Result<std::vector<NamedScore>> score_larger_networks(const FitData& data) {
  FitExclusions exclusions;
  exclusions.settings = largest_network_settings(data.networks);
  exclusions.keys = keys_of_largest_operations(data.operations);
  exclusions.keys.merge(keys_of_largest_operations(data.layers));
  const Result<DeviceProfile> profile = fit_profile_excluding(data, exclusions);
  if (!profile) return profile.error();
  std::vector<NetworkCase> cases = make_network_cases(*profile, data.networks);
  std::erase_if(cases,
                [&](const NetworkCase& network_case) { return !exclusions.settings.contains(network_case.setting); });
  return score_training_and_inference(cases);
}

Result<std::vector<NamedScore>> score_held_out_networks(const FitData& data, std::span<const NetworkCase> exclusions) {
  Result<DeviceProfile> profile = fit_profile_excluding(data, {});
  if (!profile) return std::move(profile).error();
  set_interval_log_half_widths(profile->network_model, exclusions);
  std::vector<NetworkCase> cases = make_network_cases(*profile, data.held_out_networks);
  set_case_intervals(cases, profile->network_model);
  std::vector<NamedScore> scores = score_training_and_inference(cases);
  std::map<std::string, std::vector<NetworkCase>> families;
  for (const NetworkCase& network_case : cases) families[network_case.family].push_back(network_case);
  for (const auto& [family, family_cases] : families) scores.push_back({family, score_predictions(family_cases)});
  return scores;
}

}  // namespace

Score score_predictions(std::span<const NetworkCase> cases) {
  std::vector<double> measured;
  std::vector<double> predicted;
  std::vector<double> widths;
  std::size_t covered_case_count = 0;
  for (const NetworkCase& network_case : cases) {
    measured.push_back(network_case.measured_j);
    predicted.push_back(network_case.predicted_j);
    if (network_case.low_j <= network_case.measured_j && network_case.measured_j <= network_case.high_j)
      ++covered_case_count;
    widths.push_back((network_case.high_j - network_case.low_j) / 2 / network_case.predicted_j);
  }
  Score total = score_predictions(measured, predicted);
  total.coverage = cases.empty() ? 0 : static_cast<double>(covered_case_count) / static_cast<double>(cases.size());
  total.width = quantile(widths, 0.5);
  return total;
}

Result<HeldOutCases> cross_validate_families(const FitData& data, int folds, const ProgressCallback& on_progress) {
  const auto fold = assign_network_folds(data, folds);
  HeldOutCases cases;
  for (int number = 0; number < folds; ++number) {
    report_progress(on_progress, static_cast<double>(number) / folds);
    FitExclusions exclusions;
    for (const auto& [family, fold_number] : fold) {
      if (fold_number == number) exclusions.families.insert(family);
    }
    if (exclusions.families.empty()) continue;
    const Result<DeviceProfile> profile = fit_profile_excluding(data, exclusions);
    if (!profile) return profile.error();
    for (NetworkCase& network_case : make_network_cases(*profile, data.networks)) {
      if (exclusions.families.contains(network_case.family)) cases.networks.push_back(std::move(network_case));
    }
    for (const MeasuredOperation& row : data.layers) {
      if (!exclusions.families.contains(row.family)) continue;
      const double time_s = estimate(profile->operation_model, row.operation, {false, true}).time_s;
      cases.layers.push_back({row.key, std::string(name_of(row.operation.kind)), row.time_s, time_s});
    }
  }
  return cases;
}

void set_interval_log_half_widths(NetworkModel& model, std::span<const NetworkCase> cases) {
  const double inference = family_weighted_error_quantile(cases, false, 0.9);
  const double training = family_weighted_error_quantile(cases, true, 0.9);
  model.inference_log_half_width = inference * kModelErrorScale;
  model.training_log_half_width = training * kModelErrorScale;
  model.host_bound_width_factor = kHostErrorScale / kModelErrorScale;
}

void set_layer_log_half_width(NetworkModel& model, std::span<const OperationCase> cases) {
  std::vector<double> errors;
  for (const OperationCase& operation_case : cases)
    errors.push_back(std::fabs(std::log(operation_case.predicted / operation_case.measured)));
  if (!errors.empty()) model.layer_log_half_width = quantile(std::move(errors), 0.9);
}

void set_case_intervals(std::span<NetworkCase> cases, const NetworkModel& model) {
  for (NetworkCase& network_case : cases) {
    const double width = interval_log_half_width(model, network_case.training, network_case.host_wait_fraction);
    network_case.low_j = network_case.predicted_j * std::exp(-width);
    network_case.high_j = network_case.predicted_j * std::exp(width);
  }
}

Result<Evaluation> evaluate(const FitTables& tables, const EvaluationOptions& options,
                            const ProgressCallback& on_progress) {
  // Progress counts fits, which take about equally long.
  const int folds = options.folds;
  const double compared_learner_count = options.compares_learners ? static_cast<double>(kLearnerNames.size()) : 0;
  const double fits = folds + kOperationFoldCount + kFitCountAfterCrossValidation +
                      compared_learner_count * (folds + kOperationFoldCount + 1);
  const Result<FitData> data = read_fit_data(tables);
  if (!data) return data.error();
  const Result<NoiseFloor> operation_noise = compute_noise_floor(tables.operations);
  if (!operation_noise) return operation_noise.error();
  Evaluation evaluation;
  evaluation.learner = tables.learner;
  evaluation.operation_noise = *operation_noise;
  if (!tables.networks.empty()) {
    const Result<NoiseFloor> of_networks = compute_network_noise_floor(tables.networks, tables.busy);
    if (!of_networks) return of_networks.error();
    evaluation.network_noise = *of_networks;
  }
  const Result<HeldOutCases> cases =
      cross_validate_families(*data, folds, make_partial_progress_callback(on_progress, 0, folds / fits));
  if (!cases) return cases.error();
  if (!cases->layers.empty()) {
    evaluation.layers = score_predictions_by_kind(cases->layers);
    NetworkModel model;
    set_layer_log_half_width(model, cases->layers);
    evaluation.layer_error_factor = std::exp(model.layer_log_half_width);
  }
  // Each half of the families gets its interval widths from the other half, so that no case sets its own width.
  NetworkModel even_half_model;
  NetworkModel odd_half_model;
  std::vector<NetworkCase> case_halves[2];
  std::map<std::string, std::size_t, std::less<>> half_by_family;
  for (const NetworkCase& network_case : cases->networks)
    half_by_family.try_emplace(network_case.family, half_by_family.size() % 2);
  for (const NetworkCase& network_case : cases->networks)
    case_halves[half_by_family[network_case.family]].push_back(network_case);
  set_interval_log_half_widths(even_half_model, case_halves[1]);
  set_interval_log_half_widths(odd_half_model, case_halves[0]);
  set_case_intervals(case_halves[0], even_half_model);
  set_case_intervals(case_halves[1], odd_half_model);
  evaluation.network_cases = case_halves[0];
  evaluation.network_cases.insert(evaluation.network_cases.end(), case_halves[1].begin(), case_halves[1].end());
  evaluation.networks = score_training_and_inference(evaluation.network_cases);
  Result<std::vector<OperationCase>> operation_cases = cross_validate_operations(
      *data, make_partial_progress_callback(on_progress, folds / fits, (folds + kOperationFoldCount) / fits));
  if (!operation_cases) return std::move(operation_cases).error();
  evaluation.operation_cases = std::move(*operation_cases);
  evaluation.operations = score_predictions_by_kind(evaluation.operation_cases);
  report_progress(on_progress, (folds + kOperationFoldCount) / fits);
  const Result<std::vector<OperationCase>> larger_operation_cases =
      predict_held_out_operations(*data, keys_of_largest_operations(data->operations));
  if (!larger_operation_cases) return larger_operation_cases.error();
  evaluation.larger_operation_scores = score_predictions_by_kind(*larger_operation_cases);
  FitExclusions networks;
  networks.all_networks = true;
  const Result<DeviceProfile> operations_only_scores = fit_profile_excluding(*data, networks);
  if (!operations_only_scores) return operations_only_scores.error();
  evaluation.operations_only_cases = make_network_cases(*operations_only_scores, data->networks);
  evaluation.operations_only_scores = score_training_and_inference(evaluation.operations_only_cases);
  if (!data->networks.networks.empty()) {
    Result<std::vector<NamedScore>> larger_network_scores = score_larger_networks(*data);
    if (!larger_network_scores) return std::move(larger_network_scores).error();
    evaluation.larger_network_scores = std::move(*larger_network_scores);
  }
  evaluation.disturbed_settings = data->networks.disturbed_settings.size();
  evaluation.excluded_settings = data->networks.excluded_settings;
  evaluation.excluded_settings.insert(evaluation.excluded_settings.end(),
                                      data->held_out_networks.excluded_settings.begin(),
                                      data->held_out_networks.excluded_settings.end());
  if (!data->held_out_networks.networks.empty()) {
    Result<std::vector<NamedScore>> held_out_scores = score_held_out_networks(*data, cases->networks);
    if (!held_out_scores) return std::move(held_out_scores).error();
    evaluation.held_out_networks = std::move(*held_out_scores);
  }
  if (!tables.study_settings.empty()) {
    const Result<StudyTable> seed = read_study_tables(tables.study_operations, tables.study_settings);
    if (!seed) return Error(seed.error()).with_context("seed");
    Result<std::optional<StudyEvaluation>> study_evaluation = evaluate_study_protocol(*data, *seed);
    if (!study_evaluation) return std::move(study_evaluation).error();
    evaluation.study = std::move(*study_evaluation);
  }
  if (options.compares_learners) {
    const double finished_fit_count = folds + kOperationFoldCount + kFitCountAfterCrossValidation;
    Result<std::vector<LearnerScores>> learners =
        compare_learners(*data, folds, make_partial_progress_callback(on_progress, finished_fit_count / fits, 1));
    if (!learners) return std::move(learners).error();
    evaluation.learners = std::move(*learners);
  }
  return evaluation;
}

}  // namespace joulemap::predict

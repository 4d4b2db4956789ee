// SPDX-License-Identifier: Apache-2.0
#include "predict/model/physics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "predict/graph/recurrent.h"
#include "statistics/nonnegative_least_squares.h"

namespace joulemap::predict {
namespace {

constexpr double kSecondsPerMicrosecond = 1e-6;
constexpr double kNominalElementsPerSecond = 1e12;
// Shortest duration of a kernel.
constexpr double kMinKernel_s = 1e-6;
// No prediction is below these fractions of the memory and arithmetic time at the datasheet's rates. Arithmetic can be
// much faster than the datasheet, because fast convolutions and causal attention compute less than is counted.
constexpr double kMinMemoryRoofFraction = 0.8;
constexpr double kMinComputeRoofFraction = 0.4;
// A short burst may exceed the power limit by this factor; the limit applies to the mean over a second.
constexpr double kMaxBurstPowerFactor = 1.2;
// Assumed rate of copies from the host: PCIe 4 with 16 lanes. The fitted coefficient of PhysicsTerm::bus corrects it.
constexpr double kBusBytesPerSecond = 25e9;

struct MatrixTile {
  double m;
  double n;
  double peak_fraction;
};
// Tile sizes of matrix products, and the fraction of the peak that they reach: small tiles reuse less of their inputs.
constexpr std::array<MatrixTile, 11> kMatrixTiles = {
    {{256, 128, 1.0},
     {128, 256, 1.0},
     {128, 128, 0.9},
     {128, 64, 0.75},
     {64, 128, 0.75},
     {64, 64, 0.55},
     {64, 32, 0.35},
     {32, 32, 0.25},
     {16, 64, 0.2},
     {8, 128, 0.3},  // this and the next: products of a few rows and of one row
     {1, 256, 0.3}}};
constexpr double kPipelineFillElements = 64;
constexpr double kMinSplitElements = 128;

// Values of alignment_class() for grouped and depthwise convolutions.
constexpr int kGroupedAlignmentClass = 4;
constexpr int kDepthwiseAlignmentClass = 5;

bool is_row_misaligned(std::int64_t elements, double size, std::int64_t bytes) {
  return static_cast<std::int64_t>(static_cast<double>(elements) * size) % bytes != 0;
}

std::vector<std::int64_t> contiguous_row_sizes(const Operation& operation) {
  const OperationParameters& p = operation.parameters;
  switch (operation.kind) {
    case Kind::dense:
      return {p.get("in", 1), p.get("out", 1)};
    case Kind::bmm:
      return {p.get("k", 1), p.get("n", 1), p.get("m", 1)};
    case Kind::attention:
      return {p.get("width", 1)};
    case Kind::convolution:
      return {p.get("channels", 1), p.get("out", 1)};
    default:
      return {};
  }
}

// Coefficients of recurrent layers until one is measured, in the order of PhysicsTerm: a call takes 20 us, and
// PhysicsTerm::step_latency counts as it is.
constexpr TermValues<kPhysicsTermCount> kRecurrentTimePrior = {{20, 1, 1.5, 1.2, 0, 0, 0, 0, 1, 0}};
constexpr TermValues<kPhysicsTermCount + 1> kRecurrentEnergyPrior = {{0, 0.5, 0.3, 0.5, 0, 0.3, 0, 0, 0.1, 0, 0.2}};

template <std::size_t N>
const TermValues<N>* recurrent_coefficient_prior() {
  if constexpr (N == kPhysicsTermCount) {
    return &kRecurrentTimePrior;
  } else {
    return &kRecurrentEnergyPrior;
  }
}

template <std::size_t N>
const TermValues<N>* narrowest_group_coefficients(const Coefficients<N>& fitted_coefficients,
                                                  const std::array<std::string, kCoefficientGroupLevels>& groups) {
  for (const std::string& group : groups) {
    if (const auto group_entry = fitted_coefficients.find(group); group_entry != fitted_coefficients.end())
      return &group_entry->second;
  }
  if (groups.back() == name_of(Kind::recurrent)) return recurrent_coefficient_prior<N>();
  const auto overall_entry = fitted_coefficients.find("");
  return overall_entry == fitted_coefficients.end() ? nullptr : &overall_entry->second;
}

// Weight of the wider group's coefficients as a prior, in equivalent rows, from the narrowest level to all kinds. It is
// small between kinds, which have little in common.
constexpr std::array<double, kCoefficientGroupLevels + 1> kWiderGroupPriorObservations = {12, 12, 4, 0.5, 1};
constexpr double kMinPriorPrecision = 1e-9;
constexpr double kPriorMeanSquare = 0.05;

template <std::size_t N>
struct FittedGroup {
  TermValues<N> coefficients = {};
  TermValues<N> mean_squares = {};  // mean squares of terms / measured value
};

// Nonnegative least squares with the wider group's coefficients as the prior. The precision of the prior grows with the
// term's size in the wider group. Otherwise a term that hardly occurs in a group could take any coefficient and be far
// off where the term does occur.
template <std::size_t N>
TermValues<N> fit_group_coefficients(const statistics::NormalEquations& sums, const FittedGroup<N>& wider_group,
                                     double observations_of_prior) {
  std::vector<statistics::Prior> priors(N);
  for (std::size_t index = 0; index < N; ++index) {
    const double group_mean_square = sums.gram(index, index) / std::max(1.0, sums.total_weight());
    priors[index] = {
        wider_group.coefficients[index],
        kMinPriorPrecision + observations_of_prior * std::max(group_mean_square, wider_group.mean_squares[index])};
  }
  const statistics::NonnegativeFit fit = statistics::nonnegative_least_squares(sums, priors);
  TermValues<N> coefficients{};
  std::copy(fit.x.begin(), fit.x.end(), coefficients.begin());
  return coefficients;
}

// Rounds of iteratively reweighted least squares, which minimize logarithmic errors: least squares of predicted /
// measured - 1 penalize overestimates more and bias predictions low. Errors beyond kMaxFullWeightLogError (natural
// logarithm) get less weight.
constexpr int kPhysicsReweightingRounds = 4;
constexpr double kMaxFullWeightLogError = 0.5;

template <std::size_t N>
double log_error_weight(const TermValues<N>& terms, const TermValues<N>& coefficients) {
  double ratio = 0;  // predicted / measured
  for (std::size_t index = 0; index < N; ++index) ratio += terms[index] * coefficients[index];
  ratio = std::clamp(ratio, 1e-3, 1e3);
  return std::min(1.0, kMaxFullWeightLogError / std::max(1e-9, std::fabs(std::log(ratio)))) / ratio;
}

template <std::size_t N>
struct ObservationGroup {
  std::vector<TermValues<N>> normalized_terms;  // terms / measured value
  std::string wider_group_name;
};

template <std::size_t N>
FittedGroup<N> fit_group_with_reweighting(std::span<const TermValues<N>> rows, const FittedGroup<N>& wider_group,
                                          double observations_of_prior) {
  FittedGroup<N> fitted = wider_group;
  for (int round = 0; round < kPhysicsReweightingRounds; ++round) {
    statistics::NormalEquations sums(N);
    for (const TermValues<N>& terms : rows) {
      sums.add_observation(terms, 1.0, round == 0 ? 1.0 : log_error_weight<N>(terms, fitted.coefficients));
    }
    fitted.coefficients = fit_group_coefficients<N>(sums, wider_group, observations_of_prior);
    for (std::size_t index = 0; index < N && round == 0; ++index) {
      fitted.mean_squares[index] =
          std::max(sums.gram(index, index) / static_cast<double>(rows.size()), wider_group.mean_squares[index] / 4);
    }
  }
  return fitted;
}

// Fits the coefficients of all groups, from the widest (all rows, with the prior `initial_coefficients`) to the narrowest.
template <std::size_t N, class Row, class Target>
Coefficients<N> fit_nested_groups(std::span<const PhysicsObservation> rows, const Row& terms_of_row,
                                  const Target& target_of, const TermValues<N>& initial_coefficients) {
  std::array<std::map<std::string, ObservationGroup<N>, std::less<>>, kCoefficientGroupLevels + 1> levels;
  for (const PhysicsObservation& row : rows) {
    TermValues<N> terms = terms_of_row(row);
    const double target = target_of(row);
    for (double& term : terms) term /= target;
    for (std::size_t level = 0; level <= kCoefficientGroupLevels; ++level) {
      ObservationGroup<N>& group = levels[level][level < kCoefficientGroupLevels ? row.groups[level] : std::string()];
      group.normalized_terms.push_back(terms);
      group.wider_group_name = level + 1 < kCoefficientGroupLevels ? row.groups[level + 1] : "";
    }
  }
  std::map<std::string, FittedGroup<N>, std::less<>> fitted;
  FittedGroup<N> start{initial_coefficients, {}};
  start.mean_squares.fill(kPriorMeanSquare);
  fitted[""] = fit_group_with_reweighting<N>(levels[kCoefficientGroupLevels][""].normalized_terms, start,
                                             kWiderGroupPriorObservations[kCoefficientGroupLevels]);
  for (std::size_t level = kCoefficientGroupLevels; level-- > 0;) {
    for (const auto& [name, group] : levels[level]) {
      fitted[name] = fit_group_with_reweighting<N>(group.normalized_terms, fitted.find(group.wider_group_name)->second,
                                                   kWiderGroupPriorObservations[level]);
    }
  }
  Coefficients<N> coefficients;
  for (const auto& [name, fitted_group] : fitted) coefficients[name] = fitted_group.coefficients;
  return coefficients;
}

TermValues<kPhysicsTermCount + 1> energy_terms(const PhysicsObservation& row, double limit_w) {
  TermValues<kPhysicsTermCount + 1> terms{};
  for (std::size_t index = 0; index < kPhysicsTermCount; ++index) terms[index] = row.terms[index] * limit_w;
  terms[kPhysicsTermCount] = row.time_s * limit_w;
  return terms;
}

// Adds the terms of the time steps. Each step waits for the one before: a latency, products of a few rows, and weights
// that are read again unless they stay in registers.
void add_recurrent_step_terms(const Operation& operation, const Datasheet& datasheet, double peak, TimeTerms& terms) {
  const RecurrentSizes sizes = recurrent_sizes(operation);
  const double steps = sizes.time_steps * sizes.layer_count;
  terms[PhysicsTerm::tiles] += steps * padded_flops(recurrent_step_product(sizes, operation.pass), datasheet) / peak;
  terms[PhysicsTerm::elements] = 0;
  terms[PhysicsTerm::step_latency] = recurrent_latency_s(operation);
  if (recurrent_algorithm(operation) != RecurrentAlgorithm::standard) return;
  const double weights_bytes = bytes_per_element(operation.dtype) * count_recurrent_state_weights(sizes);
  const double reread_bytes = weights_bytes * (steps - sizes.layer_count);
  const double cached = cache_hit_fraction(weights_bytes * sizes.layer_count, datasheet);
  terms[PhysicsTerm::cache] += reread_bytes * cached / datasheet.cache_bytes_per_s;
  terms[PhysicsTerm::memory] += reread_bytes * (1 - cached) / datasheet.memory_bytes_per_s;
}

std::array<std::string, kCoefficientGroupLevels> recurrent_coefficient_group_names(const Operation& operation) {
  const std::string kind(name_of(operation.kind));
  const std::string pass_group = fmt::format("{}|{}", kind, name_of(operation.pass));
  const std::string algorithm_group = fmt::format("{}|{}", pass_group, name_of(recurrent_algorithm(operation)));
  return {fmt::format("{}|{}|{}", algorithm_group, operation.form, name_of(operation.dtype)), algorithm_group,
          pass_group, kind};
}

}  // namespace

std::string_view name_of(PhysicsTerm term) {
  constexpr std::array<std::string_view, kPhysicsTermCount> kNames = {
      "launch",     "tiles", "cache",         "memory",       "elements",
      "arithmetic", "bus",   "serial_groups", "step_latency", "tensor_launches"};
  return kNames.at(static_cast<std::size_t>(term));
}

double padded_flops(const MatrixProduct& product, const Datasheet& datasheet) {
  double min_cost = INFINITY;
  for (const MatrixTile& tile : kMatrixTiles) {
    const double tiles = std::ceil(product.m / tile.m) * std::ceil(product.n / tile.n) * product.count;
    for (const double split_count : {1.0, 2.0, 4.0, 8.0, 16.0}) {
      if (split_count > 1 && product.k / split_count < kMinSplitElements) break;
      const double waves = std::ceil(tiles * split_count / datasheet.multiprocessors);
      const double depth = std::ceil(product.k / split_count / 32) * 32 + kPipelineFillElements;
      const double cost = waves * depth * tile.m * tile.n / tile.peak_fraction * (split_count > 1 ? 1.03 : 1.0);
      min_cost = std::min(min_cost, cost);
    }
  }
  return 2 * min_cost * datasheet.multiprocessors;
}

double cache_hit_fraction(double bytes, const Datasheet& datasheet) {
  const double cache_fill_ratio = bytes / (0.9 * datasheet.cache_bytes);
  return 1 / (1 + cache_fill_ratio * cache_fill_ratio * cache_fill_ratio);
}

TimeTerms time_terms(const Operation& operation, const OperationWork& work, const Datasheet& datasheet,
                     bool is_cache_cold) {
  const int alignment = alignment_class(operation);
  // Depthwise convolutions do not use tensor cores.
  const Dtype rate = alignment == kDepthwiseAlignmentClass ? Dtype::fp32 : operation.dtype;
  const double peak = datasheet.peak_flops[static_cast<std::size_t>(rate)];
  double tile_padded_flops = 0;
  for (const MatrixProduct& product : work.products) tile_padded_flops += padded_flops(product, datasheet);
  const double cached = is_cache_cold ? 0 : cache_hit_fraction(work.bytes, datasheet);
  TimeTerms terms{};
  terms[PhysicsTerm::launch] = kSecondsPerMicrosecond;
  terms[PhysicsTerm::tiles] = tile_padded_flops / peak;
  terms[PhysicsTerm::cache] = work.bytes * cached / datasheet.cache_bytes_per_s;
  terms[PhysicsTerm::memory] = work.bytes * (1 - cached) / datasheet.memory_bytes_per_s;
  terms[PhysicsTerm::elements] = std::max(work.inputs, work.outputs) / kNominalElementsPerSecond;
  terms[PhysicsTerm::arithmetic] = work.flops / peak;
  if (operation.kind == Kind::input) {  // only the bus limits copies from the host
    terms[PhysicsTerm::cache] = terms[PhysicsTerm::memory] = terms[PhysicsTerm::elements] = 0;
    terms[PhysicsTerm::bus] = work.bytes / kBusBytesPerSecond;
  }
  if (alignment == kGroupedAlignmentClass) {  // libraries often run groups serially, with a launch each
    terms[PhysicsTerm::elements] = 0;
    for (const MatrixProduct& product : work.products) {
      terms[PhysicsTerm::serial_groups] +=
          product.count *
          (kSecondsPerMicrosecond + padded_flops({product.m, product.n, product.k, 1}, datasheet) / peak);
    }
  }
  if (operation.kind == Kind::recurrent) add_recurrent_step_terms(operation, datasheet, peak, terms);
  if (operation.kind == Kind::optimizer) {
    terms[PhysicsTerm::tensor_launches] =
        static_cast<double>(operation.parameters.get("tensors", 1)) * kSecondsPerMicrosecond;
  }
  return terms;
}

int alignment_class(const Operation& operation) {
  if (!is_matrix_product(operation.kind)) return 0;
  if (const ConvolutionGrouping grouping = classify_convolution_grouping(operation);
      grouping != ConvolutionGrouping::none)
    return grouping == ConvolutionGrouping::depthwise ? kDepthwiseAlignmentClass : kGroupedAlignmentClass;
  if (operation.dtype == Dtype::fp32) return 0;  // no tensor cores
  std::int64_t bytes = 16;
  for (const std::int64_t row : contiguous_row_sizes(operation)) {
    while (bytes > 2 && is_row_misaligned(row, bytes_per_element(operation.dtype), bytes)) bytes /= 2;
  }
  return bytes == 16 ? 0 : bytes == 8 ? 1 : bytes == 4 ? 2 : 3;
}

std::array<std::string, kCoefficientGroupLevels> coefficient_group_names(const Operation& operation) {
  if (operation.kind == Kind::recurrent) return recurrent_coefficient_group_names(operation);
  const std::string kind(name_of(operation.kind));
  const std::string_view pass = name_of(operation.pass);
  const bool product = is_matrix_product(operation.kind);
  std::string form_name = operation.form;
  if (operation.kind == Kind::optimizer) {
    form_name += operation.parameters.get("fused", 0) != 0     ? "-fused"
                 : operation.parameters.get("foreach", 1) != 0 ? ""
                                                               : "-one";
  }
  if (operation.kind == Kind::input) form_name += operation.parameters.get("pinned", 0) != 0 ? "-pinned" : "-pageable";
  if (operation.kind == Kind::reduce) form_name += fmt::format("-{}", operation.parameters.get("over", 0));
  const std::string form_group = fmt::format("{}|{}|{}", kind, form_name, pass);
  std::string narrow_group =
      product ? fmt::format("{}|{}|{}", form_group, name_of(operation.dtype), alignment_class(operation))
              : fmt::format("{}|{}", form_group, bytes_per_element(operation.dtype));
  if (operation.kind == Kind::convolution)
    narrow_group += fmt::format("|{}", std::min<std::int64_t>(operation.parameters.get("kernel", 1), 3));
  // Grouped convolutions resemble each other, whatever their type, more than they resemble ungrouped ones.
  const int alignment = alignment_class(operation);
  const std::string wider_group = alignment >= kGroupedAlignmentClass ? fmt::format("{}|{}", form_group, alignment)
                                  : product ? fmt::format("{}|{}", form_group, name_of(operation.dtype))
                                            : form_group;
  return {narrow_group, wider_group, fmt::format("{}|{}", kind, pass), kind};
}

TimeCoefficients fit_time_coefficients(std::span<const PhysicsObservation> rows) {
  return fit_nested_groups<kPhysicsTermCount>(
      rows, [](const PhysicsObservation& row) { return row.terms; },
      [](const PhysicsObservation& row) { return row.time_s; }, {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}});
}

EnergyCoefficients fit_energy_coefficients(std::span<const PhysicsObservation> rows, double limit_w) {
  return fit_nested_groups<kPhysicsTermCount + 1>(
      rows, [limit_w](const PhysicsObservation& row) { return energy_terms(row, limit_w); },
      [](const PhysicsObservation& row) { return row.energy_j; }, {{0, 0.5, 0.3, 0.5, 0, 0, 0, 0, 0, 0.5, 0.2}});
}

const TermValues<kPhysicsTermCount>* time_coefficients(const TimeCoefficients& fitted_coefficients,
                                                       const std::array<std::string, kCoefficientGroupLevels>& groups) {
  return narrowest_group_coefficients(fitted_coefficients, groups);
}

bool is_measured(const TimeCoefficients& fitted_coefficients, Kind kind) {
  return fitted_coefficients.find(name_of(kind)) != fitted_coefficients.end();
}

double physical_time_s(const TimeCoefficients& fitted_coefficients, const PhysicsObservation& row) {
  const TermValues<kPhysicsTermCount>* group_coefficients =
      narrowest_group_coefficients(fitted_coefficients, row.groups);
  double time_s = 0;
  for (std::size_t index = 0; index < kPhysicsTermCount; ++index)
    time_s += row.terms[index] * (group_coefficients != nullptr ? (*group_coefficients)[index] : 1);
  return std::max(time_s, roofline_time_s(row.terms));
}

double roofline_time_s(const TimeTerms& terms) {
  return std::max({kMinKernel_s, kMinMemoryRoofFraction * terms[PhysicsTerm::memory],
                   kMinComputeRoofFraction * terms[PhysicsTerm::arithmetic]});
}

double physical_power_w(const EnergyCoefficients& fitted_coefficients, const PhysicsObservation& row,
                        const Datasheet& datasheet) {
  const TermValues<kPhysicsTermCount + 1>* group_coefficients =
      narrowest_group_coefficients(fitted_coefficients, row.groups);
  const TermValues<kPhysicsTermCount + 1> terms = energy_terms(row, datasheet.power_limit_w);
  double energy_j = 0;
  for (std::size_t index = 0; index <= kPhysicsTermCount; ++index)
    energy_j += terms[index] * (group_coefficients != nullptr ? (*group_coefficients)[index] : 0.5);
  return std::clamp(energy_j / row.time_s, datasheet.idle_w, kMaxBurstPowerFactor * datasheet.power_limit_w);
}

}  // namespace joulemap::predict

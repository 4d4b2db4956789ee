// SPDX-License-Identifier: Apache-2.0
//
// Physical time and energy of an operation: a non-negative sum of terms (enum PhysicsTerm), each a time at the
// datasheet's rates with a fitted coefficient. Non-negative least squares fits them to relative errors. Pure.
//
// Coefficients are fitted for nested groups of operations, from all kinds down to kind, form, type and alignment. Each
// group has the wider group's coefficients as its prior: a group with few measurements resembles its kind, and an
// unmeasured operation gets the coefficients of its kind.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "predict/graph/operation.h"
#include "predict/graph/work.h"
#include "predict/model/datasheet.h"

namespace joulemap::predict {

// In the order in which a profile's file stores the coefficients.
enum class PhysicsTerm : std::uint8_t {
  launch,           // launch of one kernel
  tiles,            // matrix products, padded to whole tiles and waves (padded_flops())
  cache,            // bytes from the cache
  memory,           // bytes from memory
  elements,         // elements at one rate, whatever their size in bytes
  arithmetic,       // FLOPs at the peak rate
  bus,              // bytes from the host
  serial_groups,    // the groups of a convolution, one after another
  step_latency,     // steps of a recurrent layer, each waiting for the one before
  tensor_launches,  // kernels that an optimizer launches for its tensors
};
inline constexpr std::size_t kPhysicsTermCount = 10;
std::string_view name_of(PhysicsTerm term);

// A number for each term. Energies have one more, for the duration itself (index kPhysicsTermCount).
template <std::size_t N>
struct TermValues : std::array<double, N> {
  using std::array<double, N>::operator[];
  double& operator[](PhysicsTerm term) { return (*this)[static_cast<std::size_t>(term)]; }
  double operator[](PhysicsTerm term) const { return (*this)[static_cast<std::size_t>(term)]; }
};
using TimeTerms = TermValues<kPhysicsTermCount>;  // s

// Terms at the datasheet's rates. `is_cache_cold`: the inputs are not in the cache, as if another operation had run
// between two calls.
TimeTerms time_terms(const Operation& operation, const OperationWork& work, const Datasheet& datasheet,
                     bool is_cache_cold);

// Fraction of `bytes` that the last-level cache still contains when the same operation runs again immediately.
double cache_hit_fraction(double bytes, const Datasheet& datasheet);

// FLOPs of a product padded to whole tiles and to a whole last wave of multiprocessors, for the tile size that gives
// the least.
double padded_flops(const MatrixProduct& product, const Datasheet& datasheet);

// Alignment of rows in memory. 0: 16 bytes, as tensor cores require (also fp32 and kinds without products); 1, 2, 3: 8,
// 4, 2 bytes; 4: grouped convolution; 5: depthwise convolution.
int alignment_class(const Operation& operation);

inline constexpr std::size_t kCoefficientGroupLevels = 4;
std::array<std::string, kCoefficientGroupLevels> coefficient_group_names(const Operation& operation);

// Group name to coefficients. The name "" is the group of all kinds.
template <std::size_t N>
using Coefficients = std::map<std::string, TermValues<N>, std::less<>>;
using TimeCoefficients = Coefficients<kPhysicsTermCount>;
using EnergyCoefficients = Coefficients<kPhysicsTermCount + 1>;

struct PhysicsObservation {
  std::array<std::string, kCoefficientGroupLevels> groups;
  TimeTerms terms = {};
  double time_s = 0;
  double energy_j = 0;
};
TimeCoefficients fit_time_coefficients(std::span<const PhysicsObservation> rows);
EnergyCoefficients fit_energy_coefficients(std::span<const PhysicsObservation> rows, double limit_w);

// Roofline limit: the least time, in seconds, that predictions may have whatever the coefficients and residuals.
double roofline_time_s(const TimeTerms& terms);

// Coefficients of the narrowest fitted group. For an unmeasured kind its prior (recurrent layers) or those of all
// kinds. Null if nothing was fitted.
const TermValues<kPhysicsTermCount>* time_coefficients(const TimeCoefficients& fitted_coefficients,
                                                       const std::array<std::string, kCoefficientGroupLevels>& groups);

// Whether any operation of the kind was fitted.
bool is_measured(const TimeCoefficients& fitted_coefficients, Kind kind);

double physical_time_s(const TimeCoefficients& fitted_coefficients, const PhysicsObservation& row);
// Mean power in W, clamped between idle power and the burst limit. row.time_s is the operation's duration.
double physical_power_w(const EnergyCoefficients& fitted_coefficients, const PhysicsObservation& row,
                        const Datasheet& datasheet);

}  // namespace joulemap::predict

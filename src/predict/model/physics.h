// SPDX-License-Identifier: Apache-2.0
//
// Physical time and energy of an operation: a non-negative sum of terms. Each term is a time at the datasheet's rates:
// a launch, tiles of a matrix product in whole waves, bytes from the cache, bytes from memory, elements, and
// arithmetic. The elements term is the serial groups of a grouped convolution, or the step latency of a recurrent
// layer. Each term has one coefficient, fitted by non-negative least squares on relative errors. Pure.
//
// Coefficients are fitted in groups from narrow to wide, each with the wider group as its prior: a group with few
// measurements resembles its kind, and an unmeasured operation gets the coefficients of its kind.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "predict/graph/operation.h"
#include "predict/graph/work.h"
#include "predict/model/datasheet.h"

namespace joulemap::predict {

inline constexpr std::size_t kTermCount = 6;
using TimeTerms = std::array<double, kTermCount>;  // s

// `cold`: its inputs are not in the cache, as if another operation had run between two calls.
TimeTerms time_terms(const Operation& operation, const Work& work, const Datasheet& sheet, bool cold);

// Fraction of its bytes that an operation finds in the cache right after it ran.
double cache_hit_fraction(double bytes, const Datasheet& sheet);

// FLOPs of a product padded to whole tiles and to a whole last wave of the GPU, for the cheapest usual tile size.
double padded_flops(const MatrixProduct& product, const Datasheet& sheet);

// Row alignment: 0: 16 bytes, as tensor cores require; 1, 2, 3: 8, 4, 2 bytes; 4: grouped convolution; 5: depthwise.
int alignment_class(const Operation& operation);

inline constexpr std::size_t kGroupLevels = 4;
std::array<std::string, kGroupLevels> coefficient_groups(const Operation& operation);

// Group name to coefficients; energies have one more term, the time itself.
template <std::size_t N>
using Coefficients = std::map<std::string, std::array<double, N>, std::less<>>;
using TimeCoefficients = Coefficients<kTermCount>;
using EnergyCoefficients = Coefficients<kTermCount + 1>;

struct PhysicsObservation {
  std::array<std::string, kGroupLevels> groups;
  TimeTerms terms = {};
  double time_s = 0;
  double energy_j = 0;
};
TimeCoefficients fit_time_coefficients(std::span<const PhysicsObservation> rows);
EnergyCoefficients fit_energy_coefficients(std::span<const PhysicsObservation> rows, double limit_w);

// Roofline limit: the least time that any fit or tree residual may predict, s.
double roofline_time_s(const TimeTerms& terms);

// Coefficients of the narrowest fitted group. For an unmeasured kind, its prior or those of all kinds. Null if nothing
// was fitted.
const std::array<double, kTermCount>* time_coefficients(const TimeCoefficients& fitted,
                                                        const std::array<std::string, kGroupLevels>& groups);

// Whether any operation of the kind was fitted.
bool is_measured(const TimeCoefficients& fitted, Kind kind);

double physical_time_s(const TimeCoefficients& fitted, const PhysicsObservation& row);
// Clamped between idle power and the burst limit; row.time_s is the operation's duration.
double physical_power_w(const EnergyCoefficients& fitted, const PhysicsObservation& row, const Datasheet& sheet);

}  // namespace joulemap::predict

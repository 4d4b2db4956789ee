// SPDX-License-Identifier: Apache-2.0
//
// Time and energy of an operation as physics has them: sums of terms that can only be positive, each a time that the
// datasheet would grant (a launch, tiles of a matrix product in whole waves, bytes from the cache, bytes from memory,
// elements or, of convolutions in groups, one group after the other, of recurrent layers the latency of one step after the
// other, and arithmetic), with one coefficient each, fitted by non-negative least squares on relative errors. Pure.
//
// Coefficients belong to groups from the narrow to the wide, each pulled towards those of the wider one: what was measured
// rarely is like its kind, and an operation that was never seen has the coefficients of its kind.
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

inline constexpr std::size_t kTerms = 6;
using Terms = std::array<double, kTerms>;  // seconds

// `cold`: what it reads is not in the cache, as if something else had run between two calls.
Terms time_terms(const Operation& operation, const Work& work, const Datasheet& sheet, bool cold);

// What share of its bytes an operation finds in the cache when it has just run.
double cache_share(double bytes, const Datasheet& sheet);

// FLOPs of a product with its edges filled up to whole tiles and its last wave to the whole GPU, by the cheapest of
// the usual tiles.
double padded_flops(const Product& product, const Datasheet& sheet);

// 0: rows of 16 bytes, which tensor cores want; 1, 2, 3: of 8, 4, 2 bytes; 4: in groups; 5: each channel by itself.
int alignment_of(const Operation& operation);

inline constexpr std::size_t kLevels = 4;
std::array<std::string, kLevels> groups_of(const Operation& operation);

// Names of groups to coefficients, one more for energies: the time itself.
template <std::size_t N>
using Coefficients = std::map<std::string, std::array<double, N>, std::less<>>;
using TimeCoefficients = Coefficients<kTerms>;
using EnergyCoefficients = Coefficients<kTerms + 1>;

struct PhysicsRow {
  std::array<std::string, kLevels> groups;
  Terms terms = {};
  double time_s = 0;
  double energy_j = 0;
};
TimeCoefficients fit_times(std::span<const PhysicsRow> rows);
EnergyCoefficients fit_energies(std::span<const PhysicsRow> rows, double limit_w);

// The roofs: no fit, and no residual of trees, is believed below them.
double least_time_s(const Terms& terms);

// Of the narrowest group that was measured; of a kind that was not, a prior or those of all kinds. Null: nothing was fitted.
const std::array<double, kTerms>* time_coefficients(const TimeCoefficients& fitted,
                                                    const std::array<std::string, kLevels>& groups);

// Whether any operation of the kind was fitted.
bool is_measured(const TimeCoefficients& fitted, Kind kind);

double physical_time_s(const TimeCoefficients& fitted, const PhysicsRow& row);
// Within what the GPU draws at rest and at its limit, for as long as it takes (row.time_s).
double physical_power_w(const EnergyCoefficients& fitted, const PhysicsRow& row, const Datasheet& sheet);

}  // namespace joulemap::predict

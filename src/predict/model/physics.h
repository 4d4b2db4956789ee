// SPDX-License-Identifier: Apache-2.0
//
// Physical time and energy of an operation: a non-negative sum of terms. Each term is a time at the datasheet's rates
// (enum Term). Each term has one coefficient, fitted by non-negative least squares on relative errors. Pure.
//
// Coefficients are fitted in groups from narrow to wide, each with the wider group as its prior: a group with few
// measurements resembles its kind, and an unmeasured operation gets the coefficients of its kind.
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

// In the order of the coefficients in a profile's file.
enum class Term : std::uint8_t {
  launch,           // one kernel
  tiles,            // a matrix product in tiles, in whole waves of multiprocessors
  cache,            // bytes from the cache
  memory,           // bytes from memory
  elements,         // elements at one rate, whatever their size
  arithmetic,       // FLOPs at the peak rate
  bus,              // bytes from the host
  serial_groups,    // the groups of a convolution, one after another
  step_latency,     // steps of a recurrent layer, which wait for one another
  tensor_launches,  // an optimizer's kernels for its tensors
};
inline constexpr std::size_t kTermCount = 10;
std::string_view name_of(Term term);

// A number for each term, and for energies one for the time itself (index kTermCount).
template <std::size_t N>
struct TermValues : std::array<double, N> {
  using std::array<double, N>::operator[];
  double& operator[](Term term) { return (*this)[static_cast<std::size_t>(term)]; }
  double operator[](Term term) const { return (*this)[static_cast<std::size_t>(term)]; }
};
using TimeTerms = TermValues<kTermCount>;  // s

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
using Coefficients = std::map<std::string, TermValues<N>, std::less<>>;
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
const TermValues<kTermCount>* time_coefficients(const TimeCoefficients& fitted,
                                                const std::array<std::string, kGroupLevels>& groups);

// Whether any operation of the kind was fitted.
bool is_measured(const TimeCoefficients& fitted, Kind kind);

double physical_time_s(const TimeCoefficients& fitted, const PhysicsObservation& row);
// Clamped between idle power and the burst limit; row.time_s is the operation's duration.
double physical_power_w(const EnergyCoefficients& fitted, const PhysicsObservation& row, const Datasheet& sheet);

}  // namespace joulemap::predict

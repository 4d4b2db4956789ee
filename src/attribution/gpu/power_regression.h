// SPDX-License-Identifier: Apache-2.0
//
// Power of each kernel class, from a counter that updates ten times a second and kernels that last microseconds. The
// energy between two counter updates is modelled as the busy time of each class times its power, plus idle power for
// the rest. Pure: plain data in, plain data out; same input, same bits. Watts, joules, nanoseconds.
//
// - Where the device stores a history of its power, about every 20 ms, that history replaces the counter updates: it
//   gives more observations.
// - Sensors lag (power_evidence.h). The fit takes the lag with the smallest residual; where the residual is flat it
//   takes the calibrated or the default lag, and its uncertainty widens the intervals.
// - Observations that fit badly get less weight (Huber), because polls may be late and clocks may change.
// - Classes that the data cannot separate share one power and are marked as time-proportional (separable_groups.h).
// - With priors from a kernel library, such a class keeps the power of its prior instead (library_prior_fit.h).
// - Intervals come from replicates: randomly weighted blocks of observations, a lag varied within its uncertainty, the
//   counter's gain and, for time-proportional classes, the usual spread of class powers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "attribution/gpu/kernel_timeline.h"
#include "attribution/gpu/library_prior_fit.h"
#include "attribution/gpu/power_evidence.h"
#include "attribution/ledger/time_curve.h"

namespace joulemap::attribution {

inline constexpr std::size_t kPowerReplicateCount = 400;

struct KernelClassPower {
  double watts = 0;
  double low_w = 0;  // 90 % interval
  double high_w = 0;
  double data_fraction = 0;      // fraction that the data identify, 0 .. 1; the rest is prior
  bool is_regressed = false;     // false: time-proportional, grouped with the classes it cannot be separated from
  bool is_probed = false;        // regressed, and only because of the probing
  bool is_from_library = false;  // not regressed: from the kernel library's entry of the class or of similar ones
};

struct PowerFit {
  std::vector<KernelClassPower> classes;  // the last is idle
  // By class, then by replicate: watts, given a correct counter gain. `gain_replicates`: the gain factor of each
  // replicate.
  std::vector<std::vector<double>> power_replicates;
  std::vector<double> gain_replicates;
  double gain_spread = kDefaultGainRelativeSd;
  std::int64_t lag_ns = 0;
  std::int64_t time_constant_ns = 0;  // time constant of the gauge used; 0: the counter was used
  double slowdown_exponent = 0;       // class powers are at full speed; see kernel_slowdown.h
  std::int64_t counter_lag_ns = 0;    // delay between energy use and the counter update that contains it
  std::int64_t lag_low_ns = 0;
  std::int64_t lag_high_ns = 0;
  bool is_lag_identified = false;
  double residual_sd_j = 0;  // robust standard deviation of the residuals
  std::size_t observation_count = 0;
  std::size_t separable_group_count = 0;
  bool uses_default_powers = false;  // unidentified classes have the power of usual_kernel_powers.h, not a common one

  const KernelClassPower& idle_power() const { return classes.back(); }
  // Power of kernels of a class that take `slowdown` times as long as at full speed.
  double class_power_w(std::size_t column, double slowdown) const;
  // Adds uncertainty of the attributed energy itself, a relative standard deviation, to the gains.
  void widen_gain_uncertainty(double additional_relative_sd);
};

// Returns nothing where there are too few observations to estimate the noise, or where the result is physically
// impossible. Points must be in order of time and the timeline finished. `priors`: by class, idle last, or empty.
std::optional<PowerFit> fit_powers(const KernelTimeline& timeline, const PowerEvidence& evidence,
                                   std::span<const KernelClassPrior> priors = {});

// Powers from priors alone, for recordings with too few observations.
PowerFit make_powers_from_priors(std::span<const KernelClassPrior> priors, double gain_spread = kDefaultGainRelativeSd);
// Powers of a recording that identifies none: `busy_w` for all classes, which gives a time-proportional split of what
// is not idle energy. The replicates have the usual spread of class powers.
PowerFit make_equal_class_powers(std::size_t classes, double busy_w, const IdlePower& idle,
                                 double gain_spread = kDefaultGainRelativeSd);

// Bounds of the central `share` of the values. Needs at least one value.
std::pair<double, double> central_interval(std::vector<double> values, double share);

}  // namespace joulemap::attribution

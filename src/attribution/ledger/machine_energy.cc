// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/machine_energy.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/clock.h"
#include "statistics/random.h"

namespace joulemap::attribution {
namespace {

// Lower bound of the power of a kernel class: a fit may return zero, which would get no energy.
constexpr double kLeastPower_w = 1;

// Relative standard deviation of the power of other processes. What they run, how it changes and when within two
// seconds it ran is unknown: their power is no better than a time-proportional split, however small the fit's residual.
constexpr double kOthersSpread = 0.3;
constexpr std::uint64_t kOthersSeed = 20'261'115;

void doubt(PowerFit& fit, std::uint16_t column) {
  ClassPower& power = fit.classes[column];
  power.regressed = power.probed = power.by_library = false;
  statistics::Random random(kOthersSeed);
  for (double& watts : fit.replicates[column]) watts *= std::max(1 + kOthersSpread * random.normal(), 0.0);
  std::tie(power.low_w, power.high_w) = central_interval(fit.replicates[column], 0.9);
}

TimeCurve brought_to_sum(TimeCurve curve, const TimeCurve& like) {
  curve.finish();
  if (curve.total() <= 0) return like;
  curve.scale(like.total() / curve.total());
  curve.finish();
  return curve;
}

}  // namespace

std::optional<Mode> mode_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Mode>, 3> kModes = {
      {{"regress", Mode::regress}, {"integral", Mode::integral}, {"hold", Mode::hold}}};
  for (const auto& [text, mode] : kModes) {
    if (text == name) return mode;
  }
  return std::nullopt;
}

GpuPowers find_powers(DeviceWork work, const PowerEvidence& evidence, TimeSpan span,
                      std::span<const ClassPrior> priors) {
  std::optional<PowerFit> fit = fit_powers(work.timeline, evidence, priors);
  const double gain_spread = evidence.known.gain_spread;
  if (!fit)
    fit = priors.empty() ? equal_powers(work.timeline.classes(), gain_spread) : prior_powers(priors, gain_spread);
  for (ClassPower& power : fit->classes) power.watts = std::max(power.watts, kLeastPower_w);
  if (work.others) doubt(*fit, *work.others);
  TimeCurve modelled_j(span, cells_for(span));
  for (const DeviceWork::Stretch& stretch : work.stretches) {
    modelled_j.add(stretch.begin_ns, stretch.end_ns, stretch.busy_s * fit->watts_at(stretch.column, stretch.slowdown));
  }
  modelled_j.finish();
  return {std::move(*fit), std::move(work.column_of), std::move(modelled_j), std::move(work.kernels),
          work.others,     std::move(work.usual_ns)};
}

TimeCurve curve_between(const EnergyCurve& curve, std::int64_t lag_ns, const TimeCurve& like) {
  if (curve.updates().size() < 2) return like;
  TimeCurve earlier(like.span(), like.size());
  const double cell_ns = like.cell_s() * static_cast<double>(kNanosecondsPerSecond);
  double before_j = curve.joules_at(like.span().begin_ns, lag_ns);
  for (std::size_t cell = 0; cell < like.size(); ++cell) {
    const auto end_ns = like.span().begin_ns + static_cast<std::int64_t>(cell_ns * static_cast<double>(cell + 1));
    const double until_j = curve.joules_at(end_ns, lag_ns);
    earlier.set(cell, until_j - before_j);
    before_j = until_j;
  }
  return brought_to_sum(std::move(earlier), like);
}

TimeCurve held_curve(std::span<const EnergyPoint> steps, const TimeCurve& like) {
  if (steps.size() < 3) return like;
  const auto power_w = [&](std::size_t from) {
    const double length_s = seconds(steps[from + 1].time_ns - steps[from].time_ns);
    return length_s > 0 ? (steps[from + 1].joules - steps[from].joules) / length_s : 0;
  };
  const auto hold = [](TimeCurve& held, TimeSpan span, double watts) {
    held.add(span.begin_ns, span.end_ns, watts * seconds(span.end_ns - span.begin_ns));
  };
  TimeCurve held(like.span(), like.size());
  hold(held, {like.span().begin_ns, steps[1].time_ns}, power_w(0));
  for (std::size_t i = 1; i + 1 < steps.size(); ++i)
    hold(held, {steps[i].time_ns, steps[i + 1].time_ns}, power_w(i - 1));
  hold(held, {steps.back().time_ns, like.span().end_ns}, power_w(steps.size() - 2));
  return brought_to_sum(std::move(held), like);
}

}  // namespace joulemap::attribution

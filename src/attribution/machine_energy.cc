// SPDX-License-Identifier: Apache-2.0
#include "attribution/machine_energy.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/clock.h"
#include "statistics/random.h"

namespace joulemap::attribution {
namespace {

// No kernel draws less: a fit may put one at nothing, but then it could not be given a part.
constexpr double kLeastPower_w = 1;

// What others run is not known, nor how it changes, nor when within two seconds it ran: their power is a guess as good as
// a share of time, however well the run seems to tell it. A standard deviation.
constexpr double kOthersSpread = 0.3;
constexpr std::uint64_t kOthersSeed = 20'261'115;

void doubt(PowerFit& fit, std::uint16_t column) {
  ClassPower& power = fit.classes[column];
  power.regressed = power.probed = power.by_library = false;
  statistics::Random random(kOthersSeed);
  for (double& watts : fit.replicates[column]) watts *= std::max(1 + kOthersSpread * random.normal(), 0.0);
  std::tie(power.low_w, power.high_w) = middle_of(fit.replicates[column], 0.9);
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
    fit = priors.empty() ? alike_powers(work.timeline.classes(), gain_spread) : believed_powers(priors, gain_spread);
  for (ClassPower& power : fit->classes) power.watts = std::max(power.watts, kLeastPower_w);
  if (work.others) doubt(*fit, *work.others);
  TimeCurve modelled_j(span, cells_for(span));
  for (const DeviceWork::Stretch& stretch : work.stretches) {
    modelled_j.add(stretch.begin_ns, stretch.end_ns, stretch.busy_s * fit->watts_at(stretch.column, stretch.slowness));
  }
  modelled_j.finish();
  return {std::move(*fit), std::move(work.column_of), std::move(modelled_j), std::move(work.kernels),
          work.others,     std::move(work.usual_ns)};
}

TimeCurve curve_between(std::span<const EnergyPoint> steps, std::int64_t earlier_ns, const TimeCurve& like,
                        const PowerShape& shape) {
  if (steps.size() < 2) return like;
  std::vector<EnergyPoint> points(steps.begin(), steps.end());
  for (EnergyPoint& point : points) point.time_ns -= earlier_ns;
  return brought_to_sum(drawn_between(points, shape, like), like);
}

TimeCurve held_curve(std::span<const EnergyPoint> steps, const TimeCurve& like) {
  if (steps.size() < 3) return like;
  std::vector<EnergyPoint> points = {{steps[1].time_ns, 0}};
  for (std::size_t i = 2; i < steps.size(); ++i) {
    const double before_s = seconds(steps[i - 1].time_ns - steps[i - 2].time_ns);
    const double shown_w = before_s > 0 ? (steps[i - 1].joules - steps[i - 2].joules) / before_s : 0;
    const double held_s = seconds(steps[i].time_ns - steps[i - 1].time_ns);
    points.push_back({steps[i].time_ns, points.back().joules + shown_w * held_s});
  }
  return brought_to_sum(drawn_between(points, {}, like), like);
}

}  // namespace joulemap::attribution

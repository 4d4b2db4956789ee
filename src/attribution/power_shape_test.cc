// SPDX-License-Identifier: Apache-2.0
#include "attribution/power_shape.h"

#include <gtest/gtest.h>

#include <vector>

#include "attribution/recorded_energy.h"
#include "attribution/step_rows.h"

namespace joulemap::attribution {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMillisecond = kSecond / 1000;

// Every 20 ms until `until_ns`: 900 W in every other half second, 100 W in those between.
PowerShape half_seconds(TimeSpan span, std::int64_t until_ns) {
  PowerShape shape(span);
  for (std::int64_t at_ns = -20 * kMillisecond; at_ns <= until_ns; at_ns += 20 * kMillisecond) {
    shape.add({at_ns, (at_ns - 1) / (kSecond / 2) % 2 == 0 ? 900.0 : 100.0});
  }
  shape.finish();
  return shape;
}

TEST(PowerShape, TheCounterSaysHowMuchAndTheHistoryWhen) {
  const TimeSpan span{0, 4 * kSecond};
  const std::vector<EnergyPoint> steps = {{0, 0}, {2 * kSecond, 400}, {4 * kSecond, 800}};
  TimeCurve curve = drawn_between(steps, half_seconds(span, 2 * kSecond), TimeCurve(span, 400));
  curve.finish();
  EXPECT_NEAR(curve.mean_rate(0, kSecond / 2), 360, 1);  // nine tenths of 400 J in one second
  EXPECT_NEAR(curve.mean_rate(kSecond / 2, kSecond), 40, 1);
  EXPECT_NEAR(curve.mean_rate(3 * kSecond, 7 * kSecond / 2), 200, 1e-9) << "of what the history does not know: evenly";
  EXPECT_NEAR(curve.between(0, 2 * kSecond), 400, 1e-6) << "between reads nothing is lost or made up";
  EXPECT_NEAR(curve.between(2 * kSecond, 4 * kSecond), 400, 1e-6);
}

TEST(PowerShape, BeforeTheFirstStepAndAfterTheLastTheHistorySaysHowMuch) {
  const TimeSpan span{0, 4 * kSecond};
  const std::vector<EnergyPoint> steps = {{kSecond / 2, 0}, {7 * kSecond / 2, 1500}};
  TimeCurve curve = drawn_between(steps, half_seconds(span, 4 * kSecond), TimeCurve(span, 400));
  curve.finish();
  EXPECT_NEAR(curve.mean_rate(0, kSecond / 2) / curve.mean_rate(kSecond, 3 * kSecond / 2), 1, 0.01);
  EXPECT_NEAR(curve.mean_rate(7 * kSecond / 2, 4 * kSecond) / curve.mean_rate(5 * kSecond / 2, 3 * kSecond), 1, 0.01);
}

TEST(PowerShape, AHoleInTheHistoryIsFilledEvenly) {
  const TimeSpan span{0, 2 * kSecond};
  PowerShape shape(span);
  for (const std::int64_t at_ms : {0, 20, 40, 1900, 1920, 2000}) shape.add({at_ms * kMillisecond, 700});
  shape.finish();
  TimeCurve curve = drawn_between(std::vector<EnergyPoint>{{0, 0}, {2 * kSecond, 400}}, shape, TimeCurve(span, 200));
  curve.finish();
  EXPECT_NEAR(curve.mean_rate(0, 40 * kMillisecond), 200, 1e-9);
  EXPECT_NEAR(curve.mean_rate(kSecond, 3 * kSecond / 2), 200, 1e-9);
}

// A GPU that waits at 75 W for 1.8 s and then trains at 500 W, with a counter that is read every 2.5 s: a step that takes
// 70 ms draws 35 J from the first on, and not the 14 J of the mean.
TEST(PowerShape, TheFirstStepsOfATrainingAreGivenWhatTheyDrewAndNotAMeanOfStartingUp) {
  const TimeSpan span{0, 10 * kSecond};
  constexpr std::int64_t kBegin_ns = 1800 * kMillisecond;
  const auto drawn_j = [&](std::int64_t until_ns) {
    const std::int64_t busy_ns = std::max<std::int64_t>(until_ns - kBegin_ns, 0);
    return (75.0 * static_cast<double>(until_ns - busy_ns) + 500.0 * static_cast<double>(busy_ns)) * 1e-9;
  };
  Channel counter;
  counter.name = "gpu0-energy";
  counter.domain = "gpu0";
  counter.domain_class = DomainClass::gpu;
  counter.device = "GPU-1";
  counter.scale = 1e-3;
  counter.refresh_s = 0.1;
  Channel history = counter;
  history.name = "gpu0-power-history";
  history.kind = ChannelKind::gauge;
  history.quantity = Quantity::power_history;
  history.refresh_s = 0.02;
  RecordedEnergy recorded(std::vector<Channel>{counter, history}, span, 100);
  const auto read = [&](std::uint32_t channel, std::int64_t at_ns, double value) {
    recorded.add({channel, {static_cast<std::uint64_t>(value * 1e3), at_ns, at_ns, ReadCode::ok}});
  };
  for (std::int64_t at_ns = 0; at_ns <= span.end_ns; at_ns += 2500 * kMillisecond) read(0, at_ns, drawn_j(at_ns));
  for (std::int64_t at_ns = 0; at_ns <= span.end_ns; at_ns += 20 * kMillisecond)
    read(1, at_ns, at_ns > kBegin_ns ? 500 : 75);
  const RecordedEnergy::Result energy = recorded.finish();
  ASSERT_EQ(energy.curves.size(), 1u);
  std::vector<NumberedMoment> moments;
  for (std::uint64_t step = 0; step < 100; ++step)
    moments.push_back({kBegin_ns + static_cast<std::int64_t>(step) * 70 * kMillisecond, step});
  const std::vector<NumberedEnergy> steps = energies_of(moments, energy.curves[0].energy_j, span, ProbeSpans(span));
  for (std::size_t step = 0; step < 99; ++step) EXPECT_NEAR(steps[step].energy_j.value(), 35, 0.5) << "step " << step;
}

}  // namespace
}  // namespace joulemap::attribution

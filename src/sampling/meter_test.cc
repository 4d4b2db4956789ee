// SPDX-License-Identifier: Apache-2.0
#include "sampling/meter.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/clock.h"
#include "support/sysroots.h"
#include "support/temporary_directory.h"

namespace joulemap::sampling {
namespace {

// A package whose energy the test sets, and a thermometer. Read only on request, so that results do not depend on the
// speed of the machine.
class ManualSensor final : public sensors::Sensor {
 public:
  struct SensorValues {
    std::atomic<std::uint64_t> microjoules{0};
    std::atomic<ReadCode> code{ReadCode::ok};
  };
  explicit ManualSensor(SensorValues& values) : values_(values), channels_(2) {
    channels_[0].name = channels_[0].domain = "package-0";
    channels_[0].scale = 1e-6;
    channels_[1].name = "package-0-temperature";
    channels_[1].domain = "package-0";
    channels_[1].kind = ChannelKind::gauge;
    channels_[1].quantity = Quantity::temperature;
  }
  std::span<const Channel> channels() const override { return channels_; }
  void read(std::span<Reading> readings, sensors::SamplingMode /*mode*/) noexcept override {
    const std::int64_t now_ns = monotonic_ns();
    readings[0] = {values_.microjoules, now_ns, now_ns, values_.code};
    readings[1] = {45, now_ns, now_ns, ReadCode::ok};
  }
  std::int64_t next_read_ns(std::int64_t last_ns, sensors::SamplingMode /*mode*/) const noexcept override {
    return last_ns + 3600 * kNanosecondsPerSecond;
  }

 private:
  SensorValues& values_;
  std::vector<Channel> channels_;
};

Meter make_meter(ManualSensor::SensorValues& values) {
  std::vector<std::unique_ptr<sensors::Sensor>> sensors;
  sensors.push_back(std::make_unique<ManualSensor>(values));
  return Meter({}, Sampler(std::move(sensors)));
}

Meter open_meter(const std::string& root, std::string sensors = "") {
  Result<Meter> meter = Meter::open({.root = SystemRoot{root}, .sensors = std::move(sensors)});
  EXPECT_TRUE(meter.has_value());
  return std::move(*meter);
}

// A package of 100 W whose counter updates every millisecond: the energy of a window follows from its two edges.
class SteadyPackage final : public sensors::Sensor {
 public:
  explicit SteadyPackage(std::atomic<ReadCode>& code) : code_(code), channels_(1) {
    channels_[0].name = channels_[0].domain = "package-0";
    channels_[0].scale = 1e-6;
  }
  std::span<const Channel> channels() const override { return channels_; }
  void read(std::span<Reading> readings, sensors::SamplingMode /*mode*/) noexcept override {
    const std::int64_t now_ns = monotonic_ns();
    const std::int64_t updated_ns = now_ns / kNanosecondsPerMillisecond * kNanosecondsPerMillisecond;
    readings[0] = {static_cast<std::uint64_t>(updated_ns / 10), now_ns, now_ns, code_};
  }

 private:
  std::atomic<ReadCode>& code_;
  std::vector<Channel> channels_;
};

struct SteadyMeter {
  std::atomic<ReadCode> code{ReadCode::ok};
  Meter meter = make_steady_meter(code);

  static Meter make_steady_meter(std::atomic<ReadCode>& code) {
    std::vector<std::unique_ptr<sensors::Sensor>> sensors;
    sensors.push_back(std::make_unique<SteadyPackage>(code));
    return Meter({}, Sampler(std::move(sensors)));
  }
  void sample_for(std::int64_t duration_ns) {
    for (const std::int64_t end_ns = monotonic_ns() + duration_ns; monotonic_ns() < end_ns;) meter.sample();
  }
};

TEST(Meter, MeasuresTheIncreaseOfTheCounterBetweenBeginAndEnd) {
  SteadyMeter steady;
  for (int run = 1; run <= 3; ++run) {  // one window after another
    steady.meter.prepare();
    steady.meter.begin();
    steady.sample_for(20 * kNanosecondsPerMillisecond);
    steady.meter.end();
    const DomainTable table = steady.meter.result();
    ASSERT_EQ(table.rows.size(), 1u);
    EXPECT_NEAR(table.rows[0].joules.value(), 100 * steady.meter.elapsed_s(), *table.rows[0].uncertainty_j);
    EXPECT_EQ(table.rows[0].provenance, Provenance::measured);
    ASSERT_EQ(steady.meter.sampler_costs().size(), 1u);
    EXPECT_GE(steady.meter.sampler_costs()[0].reads, 3u);
  }
}

TEST(Meter, ATemperatureIsNoEnergyDomain) {
  ManualSensor::SensorValues values;
  Meter meter = make_meter(values);
  meter.prepare();
  meter.begin();
  values.microjoules = 5'000'000;
  meter.end();
  EXPECT_EQ(meter.result().rows.size(), 1u);
}

TEST(Meter, ReportsEnergyUntilTheCounterVanished) {
  SteadyMeter steady;
  steady.meter.prepare();
  steady.meter.begin();
  steady.sample_for(20 * kNanosecondsPerMillisecond);
  steady.meter.read_all_sensors();
  steady.code = ReadCode::vanished;
  steady.meter.read_all_sensors();
  steady.sample_for(20 * kNanosecondsPerMillisecond);
  steady.meter.end();
  const DomainTable table = steady.meter.result();
  // At least 19 ms until the counter's last update. A reader that got no processor knows the edges less well, and says so.
  const double tolerance_j = table.rows[0].uncertainty_j.value();
  EXPECT_GT(table.rows[0].joules.value(), 1.9 - tolerance_j);
  EXPECT_LT(*table.rows[0].joules, 100 * steady.meter.elapsed_s() - 1.9 + tolerance_j);
  EXPECT_TRUE(table.diagnostics.contains("sensor_vanished"));
}

TEST(Meter, SplitsTheEnergyIntoIntervals) {
  ManualSensor::SensorValues values;
  Meter meter = make_meter(values);
  meter.prepare();
  meter.begin();
  values.microjoules = 1'000'000;
  EXPECT_NEAR(meter.energy_since_last_call(1).at(0).joules.value(), 1.0, 1e-9);
  values.microjoules = 4'000'000;
  EXPECT_NEAR(meter.energy_since_last_call(1).at(0).joules.value(), 3.0, 1e-9);
  EXPECT_FALSE(meter.energy_since_last_call(1).at(0).joules);  // no update: no value rather than zero
  meter.end();
}

TEST(Meter, HasNoEnergyForFrozenCounters) {
  Meter meter = open_meter(sysroot("frozen-counter"), "powercap");
  meter.prepare();
  meter.begin();
  meter.end();
  for (const DomainEnergy& row : meter.result().rows) {
    EXPECT_FALSE(row.joules) << row.name;
    EXPECT_FALSE(row.reason.empty());
  }
}

TEST(Meter, HasNoChannelsOnAnEmptyMachine) {
  const TemporaryDirectory directory;
  Meter meter = open_meter(directory.path());
  EXPECT_FALSE(meter.has_channels());
  meter.prepare();
  meter.begin();
  meter.end();
  EXPECT_TRUE(meter.result().rows.empty());
}

TEST(Meter, RefusesASensorThatDoesNotExist) { EXPECT_FALSE(Meter::open({.root = {}, .sensors = "rapl"}).has_value()); }

}  // namespace
}  // namespace joulemap::sampling

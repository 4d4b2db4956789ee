// SPDX-License-Identifier: Apache-2.0
#include "sampling/meter.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampling/doctor.h"
#include "support/sysroots.h"
#include "support/temporary_directory.h"

namespace joulemap::sampling {
namespace {

// A machine with one package whose counter is moved by hand.
class HandMovedMachine {
 public:
  explicit HandMovedMachine(std::uint64_t range_uj = 262'143'328'850) {
    directory_.write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
    directory_.write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", std::to_string(range_uj) + "\n");
    set_uj(0);
  }
  void set_uj(std::uint64_t microjoules) { path_ = directory_.write(kCounter, std::to_string(microjoules) + "\n"); }
  void remove_counter() { ::unlink(path_.c_str()); }
  const std::string& root() const { return directory_.path(); }

 private:
  static constexpr const char* kCounter = "sys/class/powercap/intel-rapl:0/energy_uj";
  TemporaryDirectory directory_;
  std::string path_;
};

Meter open_meter(const std::string& root, std::string sensors = "") {
  Result<Meter> meter = Meter::open({.root = SystemRoot{root}, .sensors = std::move(sensors), .program = {}});
  EXPECT_TRUE(meter.has_value());
  return std::move(*meter);
}

TEST(Meter, TellsWhatTheCounterRoseBetweenBeginAndEnd) {
  HandMovedMachine machine;
  Meter meter = open_meter(machine.root());
  meter.prepare();
  machine.set_uj(7'000'000);
  meter.begin();
  machine.set_uj(9'500'000);
  meter.sample();
  machine.set_uj(12'000'000);
  meter.end();
  const DomainTable table = meter.result();
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_NEAR(table.rows[0].joules.value(), 5.0, 1e-9);
  EXPECT_EQ(table.rows[0].provenance, Provenance::measured);
}

TEST(Meter, CanBeUsedForOneWindowAfterAnother) {
  HandMovedMachine machine;
  Meter meter = open_meter(machine.root());
  for (std::uint64_t run = 1; run <= 3; ++run) {
    meter.prepare();
    meter.begin();
    machine.set_uj(run * 4'000'000);
    meter.end();
    EXPECT_NEAR(meter.result().rows[0].joules.value(), 4.0, 1e-9);
  }
}

TEST(Meter, KeepsWhatWasMeasuredBeforeTheCounterVanishedAndSaysSo) {
  HandMovedMachine machine;
  Meter meter = open_meter(machine.root());
  meter.prepare();
  meter.begin();
  machine.set_uj(5'000'000);
  meter.sample();
  machine.remove_counter();
  meter.sample();
  meter.end();
  const DomainTable table = meter.result();
  EXPECT_NEAR(table.rows[0].joules.value(), 5.0, 1e-9);
  EXPECT_TRUE(table.diagnostics.contains("sensor_vanished"));
}

TEST(Meter, SplitsTheEnergyIntoIntervals) {
  HandMovedMachine machine;
  Meter meter = open_meter(machine.root());
  meter.prepare();
  meter.begin();
  machine.set_uj(1'000'000);
  meter.sample();
  EXPECT_NEAR(meter.interval(1).at(0).joules.value(), 1.0, 1e-9);
  machine.set_uj(4'000'000);
  meter.sample();
  EXPECT_NEAR(meter.interval(1).at(0).joules.value(), 3.0, 1e-9);
  meter.sample();
  EXPECT_FALSE(meter.interval(1).at(0).joules);  // it did not move: not a zero
}

TEST(Meter, SamplesOftenEnoughForASmallRange) {
  // Before a window nothing is settled and time has not begun: the period is that of the ranges alone.
  EXPECT_EQ(open_meter(HandMovedMachine().root()).period_ns(), 50 * kNanosecondsPerMillisecond);
  EXPECT_EQ(open_meter(HandMovedMachine(10'000'000).root()).period_ns(), 5 * kNanosecondsPerMillisecond);
  EXPECT_EQ(open_meter(HandMovedMachine(1000).root()).period_ns(), kNanosecondsPerMillisecond);
}

TEST(Meter, SamplesDenselyUntilItHasSeenACounterStep) {
  HandMovedMachine machine;
  Meter meter = open_meter(machine.root());
  meter.prepare();
  meter.begin();
  EXPECT_EQ(meter.period_ns(), kNanosecondsPerMillisecond);
}

TEST(Meter, GivesNoNumberForCountersThatStandStill) {
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

TEST(Meter, RefusesASensorThatDoesNotExist) {
  EXPECT_FALSE(Meter::open({.root = {}, .sensors = "rapl", .program = {}}).has_value());
}

TEST(Doctor, NotesCountersThatDoNotMove) {
  const Result<DoctorResult> result = examine(SystemRoot{sysroot("frozen-counter")}, "powercap", "");
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->sensors[0].diagnostics.contains("counter_still"));
}

}  // namespace
}  // namespace joulemap::sampling

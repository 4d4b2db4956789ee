// SPDX-License-Identifier: Apache-2.0
//
// Tests the backend with the fake NVML of tests/fake_nvml, which follows a script.
#include "sensors/nvml/nvml_sensor.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/clock.h"
#include "energy/energy_curve.h"
#include "support/sysroots.h"
#include "support/temporary_directory.h"
#include "support/virtual_clock.h"

namespace joulemap::sensors {
namespace {

// Sets the environment variables of one test and removes them afterwards. The fake NVML returns the script's values at
// the virtual time.
class Nvml : public testing::Test {
 protected:
  ~Nvml() override {
    for (const char* name : {"JOULEMAP_NVML", "JOULEMAP_FAKE_NVML", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"})
      ::unsetenv(name);
  }

  ProbeResult probe(std::string_view script, const char* library = JOULEMAP_FAKE_NVML_LIBRARY) {
    ::setenv("JOULEMAP_NVML", library, 1);
    ::setenv("JOULEMAP_FAKE_NVML", directory_.write("script", script).c_str(), 1);
    return probe_nvml(ProbeContext(SystemRoot{sysroot("no-sensors")}, "/usr/bin/joulemap"));
  }

  VirtualClock clock_;

 private:
  TemporaryDirectory directory_;
};

std::vector<std::string> names_of(const ProbeResult& probe) {
  std::vector<std::string> names;
  for (const Channel& channel : probe.status.channels) names.push_back(channel.name);
  return names;
}

bool has_raw_value(const Reading& reading, std::uint64_t expected_raw_value) {
  return reading.code == ReadCode::ok && reading.raw == expected_raw_value;
}

TEST_F(Nvml, NvmlIsOffUnderASysrootUnlessALibraryIsNamed) {
  const ProbeResult machine = probe_nvml(ProbeContext(SystemRoot{sysroot("no-sensors")}));
  EXPECT_EQ(machine.status.state, SensorState::absent);
  EXPECT_NE(machine.status.reason.find("--sysroot"), std::string::npos);
}

TEST_F(Nvml, RefusesANamedLibraryToAProgramWithMoreRightsThanItsUser) {
  EXPECT_EQ(nvml::choose_nvml_library("", false, true).path, "libnvidia-ml.so.1");
  EXPECT_EQ(nvml::choose_nvml_library("", false, false).path, "");
  EXPECT_EQ(nvml::choose_nvml_library("/tmp/a.so", false, false).path, "/tmp/a.so");
  EXPECT_FALSE(nvml::choose_nvml_library("/tmp/a.so", false, true).is_path_refused);
  const nvml::NvmlLibraryChoice library_choice = nvml::choose_nvml_library("/tmp/a.so", true, true);
  EXPECT_EQ(library_choice.path, "libnvidia-ml.so.1");
  EXPECT_TRUE(library_choice.is_path_refused);
  EXPECT_EQ(nvml::choose_nvml_library("/tmp/a.so", true, false).path, "");
}

TEST_F(Nvml, NamesALibraryThatCannotBeLoaded) {
  const ProbeResult machine = probe("", "/no/such/library.so");
  EXPECT_EQ(machine.status.state, SensorState::absent);
  EXPECT_NE(machine.status.reason.find("/no/such/library.so"), std::string::npos);
  EXPECT_EQ(machine.status.remedy, "unset JOULEMAP_NVML");
}

TEST_F(Nvml, ReportsThatTheDriverIsNotLoaded) {
  const ProbeResult machine = probe("init_error 9\n");
  EXPECT_EQ(machine.status.state, SensorState::absent);
  EXPECT_NE(machine.status.reason.find("Driver Not Loaded"), std::string::npos);
  EXPECT_EQ(machine.status.remedy, "sudo modprobe nvidia");
  EXPECT_EQ(probe("init_error 4\n").status.state, SensorState::denied);
}

TEST_F(Nvml, NotesInRecordingsThatADriverFailsButNotThatThereIsNone) {
  EXPECT_TRUE(probe("init_error 18\n").status.diagnostics.contains("gpu_failed"));
  EXPECT_TRUE(probe("", "/no/such/library.so").status.diagnostics.contains("gpu_failed")) << "somebody named it";
  EXPECT_FALSE(probe("init_error 9\n").status.diagnostics.contains("gpu_failed"));
}

TEST_F(Nvml, ReadsEveryChannelOfAGpuOnRequest) {
  const ProbeResult machine = probe("device GPU-1\n name H200\n power 0:250\n throttle 4\n");
  ASSERT_EQ(machine.status.state, SensorState::measured);
  ASSERT_EQ(machine.sensors.size(), 1u);
  ASSERT_EQ(machine.status.channels.size(), 14u);
  const Channel& energy = machine.status.channels[0];
  EXPECT_EQ(energy.name, "gpu0-energy");
  EXPECT_EQ(energy.domain, "gpu0");
  EXPECT_EQ(energy.device, "GPU-1");
  EXPECT_EQ(energy.kind, ChannelKind::counter);
  const Channel& memory = machine.status.channels[3];
  EXPECT_EQ(memory.domain, "gpu0-memory");
  EXPECT_EQ(memory.part_of, "gpu0");

  std::vector<Reading> readings(14);
  machine.sensors[0]->read(readings, SamplingMode::immediate);
  EXPECT_EQ(readings[0].code, ReadCode::ok);
  EXPECT_NEAR(static_cast<double>(readings[1].raw), 250'000, 30);
  EXPECT_NEAR(static_cast<double>(readings[3].raw), 62'500, 30);
  EXPECT_TRUE(has_raw_value(readings[4], 700'000));
  EXPECT_TRUE(has_raw_value(readings[5], 1980));
  EXPECT_TRUE(has_raw_value(readings[6], 3201));
  EXPECT_TRUE(has_raw_value(readings[7], 41));
  EXPECT_TRUE(has_raw_value(readings[8], 87));
  EXPECT_TRUE(has_raw_value(readings[9], 12));
  EXPECT_TRUE(has_raw_value(readings[10], 50'000));
  EXPECT_TRUE(has_raw_value(readings[11], 4));
}

TEST_F(Nvml, ReturnsThePowerHistoryOfTheDriverOnceAndInOrder) {
  const ProbeResult machine = probe("device GPU-1\n power 0:100 0.03:400 repeat 0.06\n");
  Sensor& sensor = *machine.sensors[0];
  const std::size_t channel = sensor.channels().size() - 1;
  EXPECT_EQ(sensor.channels()[channel].quantity, Quantity::power_history);
  std::vector<Reading> readings(sensor.channels().size());
  const std::int64_t begin_ns = monotonic_ns();
  std::vector<Sample> samples;
  while (samples.size() < 20) {
    clock_.advance(7 * kNanosecondsPerMillisecond);
    sensor.read(readings, SamplingMode::immediate);
    EXPECT_EQ(readings[channel].code, ReadCode::skipped);
    samples.insert(samples.end(), sensor.history().begin(), sensor.history().end());
  }
  std::int64_t last_ns = begin_ns;
  for (const Sample& sample : samples) {
    EXPECT_EQ(sample.channel, channel);
    EXPECT_GT(sample.reading.time_ns(), last_ns) << "each once, none from before the first read";
    last_ns = sample.reading.time_ns();
    EXPECT_GE(sample.reading.raw, 99'000u);
    EXPECT_LE(sample.reading.raw, 401'000u);
  }
  EXPECT_LE(last_ns, monotonic_ns());
}

TEST_F(Nvml, WorksWithoutAPowerHistory) {
  const ProbeResult machine = probe("device GPU-1\n unsupported history\n");
  EXPECT_EQ(machine.status.channels.size(), 13u);
  EXPECT_EQ(machine.status.channels.back().name, "gpu0-others-utilization");
}

TEST_F(Nvml, HasOneSensorForEachVisibleGpu) {
  constexpr std::string_view kThreeGpus =
      "device GPU-a\n pci 00000000:01:00.0\ndevice GPU-b\n pci 00000000:02:00.0\ndevice GPU-c\n pci 00000000:03:00.0\n";
  EXPECT_EQ(probe(kThreeGpus).sensors.size(), 3u);
  ::setenv("CUDA_VISIBLE_DEVICES", "GPU-c,0", 1);
  const ProbeResult machine = probe(kThreeGpus);
  ASSERT_EQ(machine.sensors.size(), 2u);
  EXPECT_EQ(machine.sensors[1]->channels().front().domain, "gpu2");
  EXPECT_NE(machine.status.reason.find("CUDA_VISIBLE_DEVICES hides 1 of 3"), std::string::npos);
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_EQ(probe(kThreeGpus).status.state, SensorState::absent);
}

TEST_F(Nvml, IntegratesThePowerOfACardWithoutACounterAndReportsIt) {
  const ProbeResult machine = probe("device GPU-1\n unsupported energy memory_power utilization\n");
  ASSERT_EQ(machine.status.state, SensorState::measured);
  EXPECT_EQ(names_of(machine).front(), "gpu0-power-instant");
  EXPECT_TRUE(machine.status.diagnostics.contains("no_energy_counter"));
  EXPECT_NE(machine.status.reason.find("without an energy counter"), std::string::npos);
  EXPECT_TRUE(machine.status.unreadable.empty());
}

TEST_F(Nvml, WorksWithTheFunctionsOfAnOldDriver) {
  const ProbeResult machine = probe("device GPU-1\n", JOULEMAP_OLD_FAKE_NVML_LIBRARY);
  ASSERT_EQ(machine.status.state, SensorState::measured);
  EXPECT_EQ(names_of(machine), (std::vector<std::string>{"gpu0-power-average"}));
  EXPECT_EQ(machine.status.channels.front().averaging_time_s, 0);
  std::vector<Reading> readings(1);
  machine.sensors.front()->read(readings);
  EXPECT_EQ(readings.front().code, ReadCode::ok);
}

TEST_F(Nvml, DistinguishesDeniedLostVirtualAndMigGpus) {
  const ProbeResult denied_probe = probe("device GPU-1\n denied energy instant average usage memory_power\n");
  EXPECT_EQ(denied_probe.status.state, SensorState::denied);
  EXPECT_NE(denied_probe.status.reason.find("Insufficient Permissions"), std::string::npos);
  EXPECT_EQ(denied_probe.status.unreadable.front().reason, "denied");

  const ProbeResult lost_gpu_probe = probe("device GPU-1\n absent 15\ndevice GPU-2\n");
  EXPECT_EQ(lost_gpu_probe.status.state, SensorState::measured);  // because of the other GPU
  EXPECT_TRUE(lost_gpu_probe.status.diagnostics.contains("gpu_lost"));
  EXPECT_EQ(probe("device GPU-1\n absent 15\n").status.state, SensorState::absent);
  EXPECT_EQ(probe("device GPU-1\n absent 4\n").status.state, SensorState::denied);

  const ProbeResult guest =
      probe("device GPU-1\n virtualization 2\n unsupported energy instant average usage memory_power\n");
  EXPECT_EQ(guest.status.state, SensorState::absent);
  EXPECT_NE(guest.status.reason.find("virtual GPU"), std::string::npos);

  ::setenv("CUDA_VISIBLE_DEVICES", "MIG-77", 1);
  const ProbeResult mig_probe = probe("device GPU-1\ndevice GPU-2\n mig MIG-77\n");
  ASSERT_EQ(mig_probe.sensors.size(), 1u);
  EXPECT_EQ(mig_probe.status.channels.front().device, "GPU-2");
  EXPECT_TRUE(mig_probe.status.diagnostics.contains("mig_whole_gpu"));
  EXPECT_TRUE(mig_probe.status.diagnostics.contains("mig_mode"));
}

// Reads as a sampler does, until `end_ns`.
template <class Use>
void sample(Sensor& sensor, std::int64_t end_ns, SamplingMode mode, Use&& use) {
  std::vector<Reading> readings(sensor.channels().size());
  std::int64_t next_read_time_ns = monotonic_ns();
  while (next_read_time_ns < end_ns) {
    sleep_until(next_read_time_ns);
    sensor.read(readings, mode);
    use(readings);
    next_read_time_ns = sensor.next_read_ns(next_read_time_ns, mode);
  }
}

TEST_F(Nvml, ReadsTheSlowCounterRarelyAndPowerOften) {
  const ProbeResult machine = probe("device GPU-1\n counter_spin_us 3000\n counter_phase_ms 30\n power_phase_ms 50\n");
  ASSERT_EQ(machine.sensors.size(), 1u);
  int counters = 0;
  int powers = 0;
  int temperatures = 0;
  sample(*machine.sensors[0], monotonic_ns() + 1500 * kNanosecondsPerMillisecond, SamplingMode::relaxed,
         [&](const std::vector<Reading>& readings) {
           counters += readings[0].code == ReadCode::ok ? 1 : 0;
           powers += readings[1].code == ReadCode::ok ? 1 : 0;
           temperatures += readings[7].code == ReadCode::ok ? 1 : 0;
         });
  EXPECT_GE(counters, 2);
  EXPECT_LE(counters, 15);  // including the reads that find the phase of the updates
  EXPECT_GE(temperatures, 1);
  EXPECT_LE(temperatures, 4);
  EXPECT_GT(powers, 4 * counters);
}

TEST_F(Nvml, LocatesCounterUpdatesInNearEdgeModeAndMeasuresExactly) {
  const double origin_s = seconds(monotonic_ns());
  const ProbeResult machine =
      probe("origin " + std::to_string(origin_s) +
            "\ndevice GPU-1\n power 0:100 0.35:500 repeat 0.7\n counter_spin_us 2000\n counter_phase_ms 30\n");
  ASSERT_EQ(machine.sensors.size(), 1u);
  Sensor& sensor = *machine.sensors[0];
  EnergyCurve curve(sensor.channels()[0]);
  const auto observe = [&](const std::vector<Reading>& readings) { curve.observe(readings[0]); };
  std::vector<Reading> readings(sensor.channels().size());

  const std::int64_t begin_ns = monotonic_ns() + 700 * kNanosecondsPerMillisecond;
  sample(sensor, begin_ns, SamplingMode::near_edge, observe);
  sensor.read(readings, SamplingMode::immediate);
  observe(readings);
  sample(sensor, begin_ns + 150 * kNanosecondsPerMillisecond, SamplingMode::near_edge, observe);
  const std::int64_t end_ns = begin_ns + 1400 * kNanosecondsPerMillisecond;
  sample(sensor, end_ns, SamplingMode::relaxed, observe);
  sensor.read(readings, SamplingMode::immediate);
  observe(readings);
  sample(sensor, end_ns + 250 * kNanosecondsPerMillisecond, SamplingMode::near_edge, observe);

  EXPECT_TRUE(dynamic_cast<nvml::NvmlSensor&>(sensor).counter_update_estimator().is_locked());
  const ChannelEnergy energy = curve.energy_between(begin_ns, end_ns);
  ASSERT_TRUE(energy.joules);
  EXPECT_NEAR(*energy.joules, 300 * 1.4, energy.uncertainty_j);  // two whole waves
  EXPECT_LT(energy.uncertainty_j, 50);
}

TEST(RealGpu, CounterUpdatesOfARealGpuAreLocated) {
  const ProbeResult machine = probe_nvml(ProbeContext(SystemRoot{}));
  if (machine.sensors.empty()) GTEST_SKIP() << machine.status.reason;
  auto& sensor = dynamic_cast<nvml::NvmlSensor&>(*machine.sensors[0]);
  if (sensor.channels()[0].kind != ChannelKind::counter) GTEST_SKIP() << "no energy counter";
  const auto ignore = [](const std::vector<Reading>&) {};
  sample(sensor, monotonic_ns() + kNanosecondsPerSecond, SamplingMode::near_edge, ignore);
  ASSERT_TRUE(sensor.counter_update_estimator().is_locked());
  const std::int64_t cpu_before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  sample(sensor, monotonic_ns() + 10 * kNanosecondsPerSecond, SamplingMode::relaxed, ignore);
  const double share = seconds(clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_before_ns) / 10;
  ASSERT_TRUE(sensor.counter_update_estimator().is_locked());
  std::printf("period %.4f ms, half width %.2f ms, %llu slips, %.2f %% of a core\n",
              sensor.counter_update_estimator().period_ns() * 1e-6,
              static_cast<double>(sensor.counter_update_estimator().known_update_half_width_ns()) * 1e-6,
              static_cast<unsigned long long>(sensor.counter_update_estimator().irregular_update_count()), 100 * share);
  EXPECT_EQ(sensor.counter_update_estimator().irregular_update_count(), 0u);
}

TEST_F(Nvml, RetriesSlowlyWhenTheGpuFallsOffTheBus) {
  const ProbeResult machine = probe("device GPU-1\n lost_at 0.2\ndevice GPU-2\n");
  ASSERT_EQ(machine.sensors.size(), 2u);
  Sensor& lost_gpu = *machine.sensors[0];
  std::vector<Reading> readings(lost_gpu.channels().size());
  lost_gpu.read(readings, SamplingMode::immediate);
  EXPECT_EQ(readings[0].code, ReadCode::ok);
  clock_.advance(200 * kNanosecondsPerMillisecond);
  lost_gpu.read(readings, SamplingMode::immediate);
  // Without the last two channels, other processes and power history: their readings may be skipped.
  for (const Reading& reading : std::span(readings).first(readings.size() - 2)) {
    EXPECT_EQ(reading.code, ReadCode::vanished);
  }
  const std::int64_t now_ns = monotonic_ns();
  EXPECT_GT(lost_gpu.next_read_ns(now_ns, SamplingMode::relaxed), now_ns + 900 * kNanosecondsPerMillisecond);
  EXPECT_GT(lost_gpu.next_read_ns(now_ns, SamplingMode::near_edge), now_ns + 900 * kNanosecondsPerMillisecond);
  lost_gpu.read(readings, SamplingMode::relaxed);
  EXPECT_EQ(readings[0].code, ReadCode::skipped);

  machine.sensors[1]->read(readings, SamplingMode::immediate);
  EXPECT_EQ(readings[0].code, ReadCode::ok);
}

TEST_F(Nvml, CallsAnUnknownErrorAFailedReading) {
  const ProbeResult machine = probe("device GPU-1\n fail_at 0.1\n");
  ASSERT_EQ(machine.sensors.size(), 1u);
  std::vector<Reading> readings(machine.sensors[0]->channels().size());
  machine.sensors[0]->read(readings, SamplingMode::immediate);
  EXPECT_EQ(readings[0].code, ReadCode::ok);
  clock_.advance(100 * kNanosecondsPerMillisecond);
  machine.sensors[0]->read(readings, SamplingMode::immediate);
  EXPECT_EQ(readings[0].code, ReadCode::failed);
}

}  // namespace
}  // namespace joulemap::sensors

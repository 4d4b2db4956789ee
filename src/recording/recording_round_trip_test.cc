// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "recording/recording_reader.h"
#include "recording/recording_writer.h"
#include "support/recordings.h"
#include "support/temporary_directory.h"

namespace joulemap::recording {
namespace {

class RecordingRoundTrip : public testing::Test {
 protected:
  RecordingWriter writer(const RecordingSource& source = make_recording_source(),
                         unsigned time_unit_log2 = kSampleTimeUnitLog2) {
    return *RecordingWriter::create(path(), source, time_unit_log2);
  }
  std::string path() const { return directory_.path() + "/run.joule"; }
  RecordingContents read() {
    RecordingContents recording_contents;
    Result<RecordingSummary> summary = read_recording(path(), recording_contents);
    EXPECT_TRUE(summary) << summary.error().message;
    if (summary) summary_ = *summary;
    return recording_contents;
  }

  TemporaryDirectory directory_;
  RecordingSummary summary_;
};

TEST_F(RecordingRoundTrip, PreservesEveryFieldOfChannels) {
  Channel gauge = make_recorded_channel("gpu0");
  gauge.sensor = "nvml";
  gauge.part_of = "psys";
  gauge.domain_class = DomainClass::gpu;
  gauge.device = "GPU-1";
  gauge.is_countable = false;
  gauge.kind = ChannelKind::gauge;
  gauge.quantity = Quantity::throttle_reasons;
  gauge.scale = 0.001;
  gauge.wrap_range.reset();
  gauge.refresh_s = 0.1;
  gauge.averaging_time_s = 1;
  gauge.provenance = Provenance::estimated;
  gauge.model = "linear";
  gauge.relative_uncertainty = 0.25;
  gauge.uncertainty_w = 3;
  gauge.driver = "580.159";
  RecordingWriter out = writer();
  out.set_channels(std::vector<Channel>{make_recorded_channel("package-0"), gauge});
  ASSERT_TRUE(out.finish({}));

  const RecordingContents in = read();
  ASSERT_EQ(in.channels.size(), 2u);
  EXPECT_EQ(in.channels[0].wrap_range, 262'143'328'850u);
  const Channel& decoded_gauge = in.channels[1];
  EXPECT_EQ(std::tie(decoded_gauge.name, decoded_gauge.sensor, decoded_gauge.source, decoded_gauge.domain,
                     decoded_gauge.part_of, decoded_gauge.device, decoded_gauge.model),
            std::tie(gauge.name, gauge.sensor, gauge.source, gauge.domain, gauge.part_of, gauge.device, gauge.model));
  EXPECT_EQ(
      std::tie(decoded_gauge.domain_class, decoded_gauge.is_countable, decoded_gauge.kind, decoded_gauge.quantity,
               decoded_gauge.wrap_range, decoded_gauge.provenance),
      std::tie(gauge.domain_class, gauge.is_countable, gauge.kind, gauge.quantity, gauge.wrap_range, gauge.provenance));
  EXPECT_EQ(
      std::tie(decoded_gauge.scale, decoded_gauge.refresh_s, decoded_gauge.averaging_time_s,
               decoded_gauge.relative_uncertainty, decoded_gauge.uncertainty_w),
      std::tie(gauge.scale, gauge.refresh_s, gauge.averaging_time_s, gauge.relative_uncertainty, gauge.uncertainty_w));
}

TEST_F(RecordingRoundTrip, PreservesEverythingButSamples) {
  RecordingWriter out = writer();
  out.add(ClockPair{5, -7});
  out.add(Mark{12, MarkKind::window_end, 99, 4711, "epoch \xFF\n"});
  out.add(Metric{13, -4, "loss", 0.25});
  out.add(Metric{14, std::nullopt, "", std::numeric_limits<double>::infinity()});
  out.add(EnvironmentFact{"driver", "580.1"});
  ChannelCalibration calibration;
  calibration.channel = "gpu0";
  calibration.refresh_s = 0.1;
  calibration.phase_reference_channel = "other";
  calibration.created_unix_ns = -1;
  calibration.lag_s = 0.01;
  calibration.gain_spread = 0.004;
  calibration.gain_reference_channel = "counter";
  out.add(calibration);
  EXPECT_EQ(out.pending_item_count(), 6u);
  RecordingEnd end;
  end.exit_code = -3;
  end.overhead_cpu_s = 1.5;
  end.missed_ticks = 7;
  end.lost_samples = 8;
  end.diagnostics.add({"denied", 3, "what", "how"});
  ASSERT_TRUE(out.finish(end));

  const RecordingContents in = read();
  ASSERT_EQ(in.sources.size(), 1u);
  EXPECT_EQ(in.sources[0].second.command, (std::vector<std::string>{"python", "train.py"}));
  EXPECT_EQ(in.sources[0].second.started_ns, 1'000'000'000);
  ASSERT_EQ(in.clocks.size(), 1u);
  EXPECT_EQ(in.clocks[0].second.unix_ns, -7);
  ASSERT_EQ(in.marks.size(), 1u);
  EXPECT_EQ(in.marks[0].second.name, "epoch \xFF\n");
  EXPECT_EQ(in.marks[0].second.kind, MarkKind::window_end);
  ASSERT_EQ(in.metrics.size(), 2u);
  EXPECT_EQ(in.metrics[0].second.step, -4);
  EXPECT_EQ(in.metrics[1].second.step, std::nullopt);
  EXPECT_TRUE(std::isinf(in.metrics[1].second.value));
  ASSERT_EQ(in.facts.size(), 1u);
  EXPECT_EQ(in.facts[0].second.value, "580.1");
  ASSERT_EQ(in.calibrations.size(), 1u);
  EXPECT_EQ(in.calibrations[0].second.refresh_s, 0.1);
  EXPECT_EQ(in.calibrations[0].second.idle_w, std::nullopt);
  EXPECT_EQ(in.calibrations[0].second.lag_s, 0.01);
  EXPECT_EQ(in.calibrations[0].second.lag_low_s, std::nullopt);
  EXPECT_EQ(in.calibrations[0].second.gain_spread, 0.004);
  EXPECT_EQ(in.calibrations[0].second.gain_reference_channel, "counter");
  ASSERT_EQ(in.ends.size(), 1u);
  EXPECT_EQ(in.ends[0].second.exit_code, -3);
  EXPECT_EQ(in.ends[0].second.signal, std::nullopt);
  EXPECT_EQ(in.ends[0].second.lost_samples, 8u);
  EXPECT_EQ(in.ends[0].second.diagnostics.list().at(0).remedy, "how");
  EXPECT_TRUE(summary_.all_sources_ended);
  EXPECT_TRUE(summary_.diagnostics.empty());
  EXPECT_EQ(summary_.major, 1);
}

Sample random_sample(std::mt19937_64& random, std::uint32_t channels, std::int64_t& now_ns) {
  now_ns += static_cast<std::int64_t>(random() >> (20 + random() % 44));
  const auto after_ns = now_ns + static_cast<std::int64_t>(random() >> (24 + random() % 40));
  const auto code = static_cast<ReadCode>(random() % 8 == 0 ? random() % 6 : 0);
  const std::uint64_t raw_value = code == ReadCode::ok ? random() >> random() % 64 : 0;
  return {static_cast<std::uint32_t>(random() % channels), {raw_value, now_ns, after_ns, code}};
}

TEST_F(RecordingRoundTrip, PreservesSamplesExactlyAtNanosecondResolution) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  RecordingWriter out = writer(make_recording_source(), 0);
  constexpr std::uint32_t kChannels = 5;
  out.set_channels(make_recorded_channels(kChannels));
  std::vector<Sample> written_samples;
  std::int64_t now_ns = 0;
  for (int i = 0; i < 5000; ++i) {
    written_samples.push_back(random_sample(random, kChannels, now_ns));
    out.add(written_samples.back());
    if (random() % 50 != 0) continue;
    ASSERT_TRUE(out.flush());
  }
  ASSERT_TRUE(out.finish({}));
  const RecordingContents in = read();
  for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
    const std::vector<Reading> readings = in.list_readings(channel);
    std::size_t reading_index = 0;
    for (const Sample& sample : written_samples) {
      if (sample.channel != channel) continue;
      ASSERT_LT(reading_index, readings.size());
      ASSERT_TRUE(are_readings_equal(readings[reading_index++], sample.reading));
    }
    EXPECT_EQ(reading_index, readings.size());
  }
}

TEST_F(RecordingRoundTrip, TheTimeOfAReadStaysBetweenItsBounds) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  RecordingWriter out = writer();
  out.set_channels(make_recorded_channels(1));
  std::vector<Sample> written_samples;
  std::int64_t now_ns = -5'000'000;
  for (int i = 0; i < 1000; ++i) {
    written_samples.push_back(random_sample(random, 1, now_ns));
    out.add(written_samples.back());
  }
  ASSERT_TRUE(out.finish({}));
  const std::vector<Reading> readings = read().list_readings(0);
  ASSERT_EQ(readings.size(), written_samples.size());
  constexpr std::int64_t kUnit_ns = 1 << kSampleTimeUnitLog2;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const Reading& written_reading = written_samples[i].reading;
    EXPECT_LE(readings[i].before_ns, written_reading.before_ns);
    EXPECT_LT(written_reading.before_ns - readings[i].before_ns, kUnit_ns);
    EXPECT_GE(readings[i].after_ns, written_reading.after_ns);
    EXPECT_LT(readings[i].after_ns - written_reading.after_ns, kUnit_ns);
    EXPECT_EQ(readings[i].raw, written_reading.raw);
  }
}

TEST_F(RecordingRoundTrip, SplitsSamplesThatExceedAChunk) {
  RecordingWriter out = writer();
  out.set_channels(make_recorded_channels(2));
  constexpr std::int64_t kManyTicks = 50'000;
  for (std::int64_t tick = 0; tick < kManyTicks; ++tick) {
    for (std::uint32_t channel = 0; channel < 2; ++channel) out.add(make_recorded_sample(channel, tick));
  }
  for (std::uint64_t i = 0; i < 30; ++i) out.add(Mark{0, MarkKind::step, i, 0, std::string(300'000, 'x')});
  ASSERT_TRUE(out.finish({}));
  const RecordingContents in = read();
  EXPECT_EQ(in.samples.size(), 2u * kManyTicks);
  ASSERT_EQ(in.marks.size(), 30u);
  EXPECT_EQ(in.marks[29].second.name.size(), kMaxTextBytes);
}

TEST_F(RecordingRoundTrip, SkippedReadingsAreNotRecorded) {
  RecordingWriter out = writer();
  out.set_channels(make_recorded_channels(1));
  Sample sample = make_recorded_sample(0, 1);
  sample.reading.code = ReadCode::skipped;
  out.add(sample);
  ASSERT_TRUE(out.finish({}));
  EXPECT_TRUE(read().samples.empty());
}

TEST_F(RecordingRoundTrip, DropsAndCountsSamplesThatGoBackInTime) {
  RecordingWriter out = writer();
  out.set_channels(make_recorded_channels(1));
  for (const std::int64_t tick : {1, 3, 2, 4}) out.add(make_recorded_sample(0, tick));
  ASSERT_TRUE(out.finish({}));
  EXPECT_EQ(read().samples.size(), 3u);
  EXPECT_TRUE(summary_.diagnostics.contains("samples_out_of_order"));
}

TEST_F(RecordingRoundTrip, AnExistingFileIsNotOverwritten) {
  directory_.write("run.joule", "precious");
  const Result<RecordingWriter> out = RecordingWriter::create(path(), make_recording_source());
  ASSERT_FALSE(out);
  EXPECT_FALSE(out.error().remedy.empty());
  EXPECT_EQ(file_bytes(path()), "precious");
}

}  // namespace
}  // namespace joulemap::recording

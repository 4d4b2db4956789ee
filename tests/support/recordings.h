// SPDX-License-Identifier: Apache-2.0
//
// Recordings for tests: sample contents, and a visitor that stores everything.
#pragma once

#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "recording/recording_reader.h"

namespace joulemap {

inline RecordingSource make_recording_source(std::int64_t pid = 4711) {
  return {"0123456789abcdef0123456789abcdef",
          "node-1",
          "boot-a",
          pid,
          1'000'000'000,
          "recorder",
          {"python", "train.py"},
          "0.1.0"};
}

inline Channel make_recorded_channel(const std::string& name) {
  Channel channel;
  channel.name = channel.domain = name;
  channel.sensor = "powercap";
  channel.source = "/sys/class/powercap/" + name;
  channel.scale = 1e-6;
  channel.wrap_range = 262'143'328'850;
  return channel;
}

inline std::vector<Channel> make_recorded_channels(std::size_t count) {
  std::vector<Channel> channels;
  for (std::size_t i = 0; i < count; ++i) channels.push_back(make_recorded_channel("package-" + std::to_string(i)));
  return channels;
}

// One reading every 50 ms, at multiples of 512 ns, which a recording stores exactly.
inline Sample make_recorded_sample(std::uint32_t channel, std::int64_t tick) {
  const std::int64_t before_ns = 512 * (2'000'000 + tick * 97'657 + std::int64_t{channel} * 4);
  return {channel, {static_cast<std::uint64_t>(tick) * 2'500'000 + channel, before_ns, before_ns + 512, ReadCode::ok}};
}

struct RecordingContents final : recording::RecordingVisitor {
  template <class T>
  using WithSource = std::vector<std::pair<std::uint32_t, T>>;  // with the source number
  WithSource<RecordingSource> sources;
  std::vector<Channel> channels;
  std::vector<Sample> samples;
  WithSource<ClockPair> clocks;
  WithSource<Mark> marks;
  WithSource<Metric> metrics;
  WithSource<EnvironmentFact> facts;
  WithSource<ChannelCalibration> calibrations;
  WithSource<RecordingEnd> ends;

  void on_source(std::uint32_t source, const RecordingSource& it) override { sources.emplace_back(source, it); }
  void on_channels(std::uint32_t, std::uint32_t, std::span<const Channel> new_channels) override {
    channels.insert(channels.end(), new_channels.begin(), new_channels.end());
  }
  void on_samples(std::uint32_t, std::span<const Sample> new_samples) override {
    samples.insert(samples.end(), new_samples.begin(), new_samples.end());
  }
  void on_clock(std::uint32_t source, const ClockPair& it) override { clocks.emplace_back(source, it); }
  void on_mark(std::uint32_t source, const Mark& it) override { marks.emplace_back(source, it); }
  void on_metric(std::uint32_t source, const Metric& it) override { metrics.emplace_back(source, it); }
  void on_fact(std::uint32_t source, const EnvironmentFact& it) override { facts.emplace_back(source, it); }
  void on_calibration(std::uint32_t source, const ChannelCalibration& it) override {
    calibrations.emplace_back(source, it);
  }
  void on_end(std::uint32_t source, const RecordingEnd& it) override { ends.emplace_back(source, it); }

  std::vector<Reading> list_readings(std::uint32_t channel) const {
    std::vector<Reading> readings;
    for (const Sample& sample : samples) {
      if (sample.channel == channel) readings.push_back(sample.reading);
    }
    return readings;
  }
};

inline bool are_readings_equal(const Reading& a, const Reading& b) {
  return a.raw == b.raw && a.before_ns == b.before_ns && a.after_ns == b.after_ns && a.code == b.code;
}

inline std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace joulemap

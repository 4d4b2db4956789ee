// SPDX-License-Identifier: Apache-2.0
//
// Writes the recording that `joulemap record` produces in many hours with four RAPL counters and a GPU at default
// settings: build/bin/bench_long_recording HOURS FILE. Then: /usr/bin/time -v joulemap report FILE.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/clock.h"
#include "recording/part_folder.h"

namespace {

using namespace joulemap;

constexpr std::uint32_t kRaplChannelCount = 4;
constexpr std::uint32_t kPowerChannelCount = 3;
constexpr std::uint32_t kCounterChannel = kRaplChannelCount + kPowerChannelCount;
constexpr std::int64_t kTick_ns = 18 * kNanosecondsPerMillisecond;  // poll period of H200 power values

std::vector<Channel> make_channels() {
  std::vector<Channel> channels(kCounterChannel + 1);
  for (std::uint32_t i = 0; i < channels.size(); ++i) {
    const bool gauge = i >= kRaplChannelCount && i < kCounterChannel;
    channels[i].name = channels[i].domain = fmt::format("domain-{}", i);
    channels[i].kind = gauge ? ChannelKind::gauge : ChannelKind::counter;
    channels[i].quantity = gauge ? Quantity::power : Quantity::energy;
    channels[i].scale = i < kRaplChannelCount ? 1e-6 : 1e-3;
    channels[i].refresh_s = i < kRaplChannelCount ? 0.001 : 0.1;
  }
  return channels;
}

int write(double hours, const std::string& file) {
  Result<recording::PartFolder> folder = recording::PartFolder::create(file, {"train"});
  if (!folder) return 1;
  Result<recording::RecordingWriter> writer = folder->open_part("recorder");
  if (!writer) return 1;
  writer->set_channels(make_channels());
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> late_ns(40'000, 120'000);
  std::uniform_int_distribution<std::int64_t> read_ns(900, 4'000);
  std::vector<std::uint64_t> raw_counters(kCounterChannel + 1, 300'000);
  const auto add = [&](std::uint32_t channel, std::int64_t due_ns) {
    const std::int64_t before_ns = due_ns + late_ns(random);
    writer->add(Sample{channel, {raw_counters[channel], before_ns, before_ns + read_ns(random), ReadCode::ok}});
  };
  const std::int64_t start_ns = monotonic_ns();
  writer->add(Mark{start_ns, MarkKind::command_begin, 0, 0, {}});
  const auto end_ns = start_ns + static_cast<std::int64_t>(hours * 3600e9);
  for (std::int64_t now_ns = start_ns, ticks = 0; now_ns < end_ns; now_ns += kTick_ns, ++ticks) {
    for (std::uint32_t i = 0; i < kRaplChannelCount && ticks % 3 == 0; ++i) {
      raw_counters[i] += 5'000'000 + random() % 500'000;
      add(i, now_ns);
    }
    for (std::uint32_t i = kRaplChannelCount; i < kCounterChannel; ++i) {
      if (ticks % 6 == 0) raw_counters[i] = 300'000 + random() % 40'000;
      add(i, now_ns);
    }
    if (ticks % 60 == 0) {
      raw_counters[kCounterChannel] += 330'000 + random() % 30'000;
      add(kCounterChannel, now_ns);
      writer->add(ClockPair{now_ns, now_ns + 1'700'000'000'000'000'000});
      if (!writer->flush()) return 1;
    }
  }
  writer->add(Mark{end_ns, MarkKind::command_end, 0, 0, {}});
  if (!writer->finish({})) return 1;
  const Result<recording::JoinSummary> join_summary = folder->join();
  if (!join_summary) return 1;
  fmt::print("{} bytes\n", join_summary->bytes);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: bench_long_recording HOURS FILE\n");
    return 2;
  }
  return write(std::strtod(argv[1], nullptr), argv[2]);
}

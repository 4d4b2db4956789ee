// SPDX-License-Identifier: Apache-2.0
//
// Tests the bytes per sample on streams that resemble real sensors. Prints the numbers of
// docs/reference/recording-format.md.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <functional>
#include <random>

#include "base/clock.h"
#include "recording/recording_parts.h"
#include "recording/recording_writer.h"
#include "support/recordings.h"
#include "support/temporary_directory.h"

namespace joulemap::recording {
namespace {

constexpr std::int64_t kRunLength_ns = 120 * kNanosecondsPerSecond;

using Random = std::mt19937_64;

std::int64_t uniform(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}
double normal(Random& random, double mean, double deviation) {
  return std::normal_distribution<double>(mean, deviation)(random);
}

// Counters of several zones, read one after another by one thread that wakes 50 to 100 us late.
std::vector<Sample> simulate_rapl_counters(Random& random, std::uint32_t first_channel, std::uint32_t zones,
                                           double watts) {
  std::vector<Sample> samples;
  std::vector<double> quanta(zones, 1e8);
  for (std::int64_t deadline_ns = 0; deadline_ns < kRunLength_ns; deadline_ns += 50 * kNanosecondsPerMillisecond) {
    std::int64_t now_ns = 5'000'000'000'000 + deadline_ns + uniform(random, 50'000, 100'000);
    for (std::uint32_t zone = 0; zone < zones; ++zone) {
      quanta[zone] += std::max(0.0, normal(random, watts, 0.05 * watts)) * 0.05 / 61.035e-6;
      const auto raw_value = static_cast<std::uint64_t>(quanta[zone]) * 61035 / 1000;  // as Linux computes microjoules
      const std::int64_t after_ns = now_ns + uniform(random, 900, 2600);
      samples.push_back({first_channel + zone, {raw_value, now_ns, after_ns, ReadCode::ok}});
      now_ns = after_ns + uniform(random, 60, 140);
    }
  }
  return samples;
}

// A power gauge in milliwatts, polled every 10 ms, that updates every 100 ms.
std::vector<Sample> simulate_nvml_gauge(Random& random, std::uint32_t channel) {
  std::vector<Sample> samples;
  std::uint64_t raw_value = 300'000;
  for (std::int64_t deadline_ns = 0; deadline_ns < kRunLength_ns; deadline_ns += 10 * kNanosecondsPerMillisecond) {
    if (deadline_ns % (100 * kNanosecondsPerMillisecond) == 0)
      raw_value = static_cast<std::uint64_t>(normal(random, 300e3, 20e3));
    const std::int64_t before_ns = 5'000'000'000'000 + deadline_ns + uniform(random, 50'000, 100'000);
    samples.push_back({channel, {raw_value, before_ns, before_ns + uniform(random, 8'000, 20'000), ReadCode::ok}});
  }
  return samples;
}

struct Sizes {
  double part_bytes_per_sample = 0;    // bytes per sample in the part
  double merged_bytes_per_sample = 0;  // bytes per sample in the joined file
};

std::uint64_t file_size_bytes(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return static_cast<std::uint64_t>(status.st_size);
}

Sizes record(const std::vector<Sample>& samples, std::size_t channels, unsigned time_unit_log2) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path();
  const std::string part = recording_part_path(folder, make_recording_source());
  {
    RecordingWriter writer = *RecordingWriter::create(part, make_recording_source(), time_unit_log2);
    writer.set_channels(make_recorded_channels(channels));
    std::int64_t next_flush_ns = samples.front().reading.before_ns + kNanosecondsPerSecond;
    for (const Sample& sample : samples) {
      if (sample.reading.before_ns >= next_flush_ns) {
        writer.add(ClockPair{next_flush_ns, 1'760'000'000'000'000'000 + next_flush_ns + next_flush_ns % 1000});
        EXPECT_TRUE(writer.flush());
        next_flush_ns += kNanosecondsPerSecond;
      }
      writer.add(sample);
    }
    EXPECT_TRUE(writer.finish({}));
  }
  Sizes sizes;
  const auto count = static_cast<double>(samples.size());
  sizes.part_bytes_per_sample = static_cast<double>(file_size_bytes(part)) / count;
  const std::string joined_path = folder + ".joined";
  EXPECT_TRUE(join_parts(folder, joined_path));
  sizes.merged_bytes_per_sample = static_cast<double>(file_size_bytes(joined_path)) / count;
  ::unlink(joined_path.c_str());
  return sizes;
}

std::vector<Sample> sorted_by_time(std::vector<Sample> samples) {
  std::stable_sort(samples.begin(), samples.end(),
                   [](const Sample& a, const Sample& b) { return a.reading.before_ns < b.reading.before_ns; });
  return samples;
}

std::vector<Sample> merge_samples(std::vector<Sample> a, const std::vector<Sample>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return sorted_by_time(std::move(a));
}

struct Stream {
  const char* name;
  std::size_t channels;
  std::vector<Sample> samples;
};

std::vector<Stream> simulate_streams(Random& random) {
  return {{"1 RAPL counter", 1, simulate_rapl_counters(random, 0, 1, 50)},
          {"4 RAPL counters", 4, simulate_rapl_counters(random, 0, 4, 50)},
          {"1 NVML gauge", 1, simulate_nvml_gauge(random, 0)},
          {"4 RAPL counters and an NVML gauge", 5,
           merge_samples(simulate_rapl_counters(random, 0, 4, 50), simulate_nvml_gauge(random, 4))}};
}

TEST(RecordingSize, ASampleTakesAtMostFourBytes) {
  Random random(20240601);
  for (const Stream& stream : simulate_streams(random)) {
    const Sizes default_sizes = record(stream.samples, stream.channels, kSampleTimeUnitLog2);
    const Sizes exact_ns_sizes = record(stream.samples, stream.channels, 0);
    fmt::print("{}: {:.2f} bytes per sample ({:.2f} before the join); with exact nanoseconds {:.2f} ({:.2f})\n",
               stream.name, default_sizes.merged_bytes_per_sample, default_sizes.part_bytes_per_sample,
               exact_ns_sizes.merged_bytes_per_sample, exact_ns_sizes.part_bytes_per_sample);
    EXPECT_LE(default_sizes.merged_bytes_per_sample, 4.0) << stream.name;
  }
}

TEST(RecordingSize, ThreeDaysFitInto500Megabytes) {
  Random random(20240602);
  // Two sockets with memory, and four GPUs with one power gauge each.
  std::vector<Sample> samples = simulate_rapl_counters(random, 0, 4, 80);
  for (std::uint32_t gpu = 0; gpu < 4; ++gpu) {
    const std::vector<Sample> gauge_samples = simulate_nvml_gauge(random, 4 + gpu);
    samples.insert(samples.end(), gauge_samples.begin(), gauge_samples.end());
  }
  const auto count = static_cast<double>(samples.size());
  const Sizes sizes = record(sorted_by_time(std::move(samples)), 8, kSampleTimeUnitLog2);
  const double three_days = 72.0 * 3600 * kNanosecondsPerSecond / kRunLength_ns;
  fmt::print("72 hours: {:.0f} MB, {:.0f} MB before the join\n",
             three_days * count * sizes.merged_bytes_per_sample / 1e6,
             three_days * count * sizes.part_bytes_per_sample / 1e6);
  EXPECT_LE(three_days * count * sizes.part_bytes_per_sample, 500e6);
}

}  // namespace
}  // namespace joulemap::recording

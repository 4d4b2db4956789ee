// SPDX-License-Identifier: Apache-2.0
//
// Measures the disk space of a captured long GPU training with the kernels of ResNet-50 (737 in a step of 32.5 ms, 160
// layers forward and backward). They pass through the capture's own log and the recording writer, on a simulated clock.
//
//   build/bin/bench_training_day HOURS FILE
#include <fmt/format.h>

#include <chrono>
#include <climits>
#include <cstdlib>
#include <random>

#include "base/clock.h"
#include "capture/kernel_log.h"
#include "recording/recording_parts.h"
#include "recording/recording_writer.h"

namespace {

using namespace joulemap;

constexpr std::uint32_t kKernelsPerStep = 737;
constexpr std::uint32_t kScopeCount = 480;
constexpr std::uint32_t kKernelClassCount = 96;
constexpr std::int64_t kStep_ns = 32'500'000;

struct TrainingDay {
  capture::KernelLog log;
  recording::RecordingWriter writer;
  std::mt19937_64 random{2026};
  std::vector<std::string> names;
  std::uint32_t correlation = 0;
};

void simulate_step(TrainingDay& day, std::uint32_t serial, std::int64_t begin_ns) {
  day.log.begin_step(serial, serial, begin_ns, true);
  std::int64_t now_ns = begin_ns + 400'000;
  for (std::uint32_t i = 0; i < kKernelsPerStep; ++i) {
    const std::int64_t usual_ns = 4'000 + (i * 7919 % 97) * 800;
    const auto jitter_ns = static_cast<std::int64_t>(day.random() % static_cast<std::uint64_t>(usual_ns / 20 + 64));
    capture::KernelActivityRecord kernel_activity;
    kernel_activity.name = day.names[i % kKernelClassCount];
    kernel_activity.grid = {i % kKernelClassCount + 1, 1, 1};
    kernel_activity.block = {256, 1, 1};
    kernel_activity.stream = i % 50 == 0 ? 20 : 7;
    kernel_activity.correlation = day.correlation += 2 + (i % 3);
    kernel_activity.start_ns = now_ns + static_cast<std::int64_t>(day.random() % 1200);
    kernel_activity.end_ns = now_ns = kernel_activity.start_ns + usual_ns + jitter_ns;
    day.log.on_launch(kernel_activity.correlation, 1 + i * kScopeCount / kKernelsPerStep, serial, 0);
    day.log.on_kernel(kernel_activity);
  }
  day.writer.add(Mark{begin_ns, MarkKind::step, serial, 4711, "inferred"});
  day.writer.add(
      Metric{begin_ns, serial, "loss", 7.0 / (1 + serial * 1e-4) + static_cast<double>(day.random() % 1000) * 1e-4});
}

void write(TrainingDay& day, std::int64_t now_ns, std::int64_t& last_tally_ns, bool is_last) {
  Activity activity{.begin_ns = last_tally_ns, .end_ns = now_ns};
  const bool tallies = is_last || now_ns - last_tally_ns >= capture::tally_write_period_ns(now_ns);
  day.log.collect_kernel_activity(activity, is_last ? INT64_MAX : now_ns - 2 * kNanosecondsPerSecond, tallies);
  if (tallies) {
    for (std::uint32_t scope = 1; scope <= kScopeCount; ++scope) {
      const auto wall_ns = static_cast<std::int64_t>(200'000'000 + day.random() % 5'000'000);
      activity.scope_tallies.push_back({scope, 308, 1, wall_ns, wall_ns - 1000, 0});
    }
    last_tally_ns = now_ns;
  }
  day.writer.add(std::move(activity));
  if (!day.writer.flush()) fmt::print(stderr, "could not be written\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return fmt::print(stderr, "bench_training_day HOURS FILE\n"), 2;
  const double hours = std::strtod(argv[1], nullptr);
  RecordingSource source{std::string(32, '0'), "host", "boot", 1, 0, "process", {}, "0"};
  Result<recording::RecordingWriter> writer = recording::RecordingWriter::create(argv[2], source);
  if (!writer) return fmt::print(stderr, "{}\n", writer.error().message), 1;
  TrainingDay day{.log = {}, .writer = std::move(*writer), .names = {}};
  for (std::uint32_t i = 0; i < kKernelClassCount; ++i) {
    day.names.push_back(fmt::format("_ZN2at6native29vectorized_elementwise_kernelILi{}EEEvi", i));
  }
  const auto steps = static_cast<std::uint32_t>(hours * 3600e9 / kStep_ns);
  const auto start_time = std::chrono::steady_clock::now();
  std::int64_t last_tally_ns = 0;
  for (std::uint32_t serial = 1; serial <= steps; ++serial) {
    simulate_step(day, serial, serial * kStep_ns);
    if (serial % 15 == 0) write(day, serial * kStep_ns, last_tally_ns, false);
  }
  write(day, (steps + 1) * kStep_ns, last_tally_ns, true);
  if (!day.writer.finish({})) return 1;
  const double kernels = static_cast<double>(steps) * kKernelsPerStep;
  const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_time).count();
  const auto bytes = static_cast<double>(day.writer.bytes_written());
  fmt::print("{} hours, {} steps, {:.3g} kernels: {:.1f} MB, {:.3g} bytes a kernel, {:.0f} ns of CPU a kernel\n", hours,
             steps, kernels, bytes / 1e6, bytes / kernels, took_s / kernels * 1e9);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "session/cpu_time_log.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/cpu_times.h"
#include "session/command_cpu_time.h"

namespace joulemap::session {
namespace {

constexpr std::int64_t kSearchPeriod_ns = 10 * kNanosecondsPerSecond;
// Slightly less than four 50 ms cycles of the recorder's loop, so that a cycle that is slightly early is not skipped.
constexpr std::int64_t kClosePeriod_ns = 190 * kNanosecondsPerMillisecond;
constexpr std::int64_t kPeriod_ns = kNanosecondsPerSecond;
constexpr std::int64_t kCloseFor_ns = 600 * kNanosecondsPerSecond;
// Reads may use at most 1/kPartOfACpu of one CPU. A read takes 15 us on a machine with two CPUs, and more with more
// CPUs.
constexpr std::int64_t kPartOfACpu = 1000;
constexpr double kMillisecond_s = 1e-3;

Channel channel_named(std::string_view name, std::string_view source) {
  Channel channel;
  channel.name = name;
  channel.sensor = "proc";
  channel.source = source;
  channel.domain = "cpu-time";
  channel.is_countable = false;
  channel.quantity = Quantity::cpu_time;
  channel.scale = kMillisecond_s;
  channel.refresh_s = 0.01;
  return channel;
}

Sample sample_of(std::uint32_t channel, double cpu_s, std::int64_t before_ns) {
  return {channel,
          {static_cast<std::uint64_t>(std::llround(cpu_s / kMillisecond_s)), before_ns, monotonic_ns(), ReadCode::ok}};
}

}  // namespace

std::vector<Channel> CpuTimeLog::channels() {
  return {channel_named(kMachineCpuTime, "/proc/stat"), channel_named(kCommandCpuTime, "/proc/*/stat")};
}

std::vector<Sample> CpuTimeLog::read() {
  std::vector<Sample> samples;
  const std::int64_t now_ns = monotonic_ns();
  if (const Result<MachineCpuTime> machine = read_machine_cpu_time(SystemRoot{})) {
    samples.push_back(sample_of(first_channel_, machine->busy_s, now_ns));
  }
  if (begun_ns_ == 0) begun_ns_ = now_ns;
  const std::int64_t took_ns = monotonic_ns() - now_ns;
  const std::int64_t close_ns = std::clamp(kPartOfACpu * took_ns, kClosePeriod_ns, kPeriod_ns);
  next_read_ns_ = now_ns + (now_ns - begun_ns_ < kCloseFor_ns ? close_ns : kPeriod_ns);
  if (now_ns < next_search_ns_) return samples;
  next_search_ns_ = now_ns + kSearchPeriod_ns;
  const std::optional<double> used_s = attached_pid_ ? attached_tree_cpu_s(*attached_pid_) : descendants_cpu_s();
  if (used_s) samples.push_back(sample_of(first_channel_ + 1, *used_s, now_ns));
  return samples;
}

}  // namespace joulemap::session

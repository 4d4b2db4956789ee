// SPDX-License-Identifier: Apache-2.0
#include "session/cpu_time_log.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/cpu_times.h"

namespace joulemap::session {
namespace {

constexpr std::int64_t kLoggedSearchPeriod_ns = 10 * kNanosecondsPerSecond;
// Slightly less than four 50 ms cycles of the recorder's loop, so that a cycle that is slightly early is not skipped.
constexpr std::int64_t kInitialReadPeriod_ns = 190 * kNanosecondsPerMillisecond;
constexpr std::int64_t kCpuTimeReadPeriod_ns = kNanosecondsPerSecond;
constexpr std::int64_t kInitialReadPhaseDuration_ns = 600 * kNanosecondsPerSecond;
// Reads may use at most 1/kMinPeriodPerReadDuration of one CPU. A read takes 15 us on a machine with two CPUs, and more with
// more CPUs.
constexpr std::int64_t kMinPeriodPerReadDuration = 1000;
constexpr double kSecondsPerMillisecond = 1e-3;

Channel make_cpu_time_channel(std::string_view name, std::string_view source) {
  Channel channel;
  channel.name = name;
  channel.sensor = "proc";
  channel.source = source;
  channel.domain = "cpu-time";
  channel.is_countable = false;
  channel.quantity = Quantity::cpu_time;
  channel.scale = kSecondsPerMillisecond;
  channel.refresh_s = 0.01;
  return channel;
}

Sample make_cpu_time_sample(std::uint32_t channel, double cpu_s, std::int64_t before_ns) {
  return {channel,
          {static_cast<std::uint64_t>(std::llround(cpu_s / kSecondsPerMillisecond)), before_ns, monotonic_ns(),
           ReadCode::ok}};
}

}  // namespace

CpuTimeLog::CpuTimeLog(std::uint32_t first_channel, std::optional<pid_t> attached_pid) : first_channel_(first_channel) {
  if (attached_pid) attached_cpu_time_.emplace(*attached_pid, kLoggedSearchPeriod_ns);
}

std::vector<Channel> CpuTimeLog::make_channels() {
  return {make_cpu_time_channel(kMachineCpuTimeChannel, "/proc/stat"),
          make_cpu_time_channel(kCommandCpuTimeChannel, "/proc/*/stat")};
}

std::vector<Sample> CpuTimeLog::read_samples() {
  std::vector<Sample> samples;
  const std::int64_t now_ns = monotonic_ns();
  if (const Result<MachineCpuTime> machine = read_machine_cpu_time(SystemRoot{})) {
    samples.push_back(make_cpu_time_sample(first_channel_, machine->busy_s, now_ns));
  }
  if (first_read_ns_ == 0) first_read_ns_ = now_ns;
  const std::int64_t read_duration_ns = monotonic_ns() - now_ns;
  const std::int64_t adaptive_read_period_ns =
      std::clamp(kMinPeriodPerReadDuration * read_duration_ns, kInitialReadPeriod_ns, kCpuTimeReadPeriod_ns);
  next_read_ns_ = now_ns + (now_ns - first_read_ns_ < kInitialReadPhaseDuration_ns ? adaptive_read_period_ns
                                                                                   : kCpuTimeReadPeriod_ns);
  if (const std::optional<double> process_cpu_s = read_process_cpu_s(now_ns))
    samples.push_back(make_cpu_time_sample(first_channel_ + 1, *process_cpu_s, now_ns));
  return samples;
}

std::optional<double> CpuTimeLog::read_process_cpu_s(std::int64_t now_ns) {
  if (attached_cpu_time_) return attached_cpu_time_->read_cpu_s();
  if (now_ns < next_search_ns_) return std::nullopt;
  next_search_ns_ = now_ns + kLoggedSearchPeriod_ns;
  return descendants_cpu_s();
}

void CpuTimeLog::search_processes_at_next_read() {
  next_search_ns_ = 0;
  if (attached_cpu_time_) attached_cpu_time_->search_at_next_read();
}

}  // namespace joulemap::session

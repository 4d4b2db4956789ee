// SPDX-License-Identifier: Apache-2.0
#include "sensors/perf_event/perf_event_sensor.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/small_file.h"
#include "base/text.h"
#include "sensors/remedies.h"

namespace joulemap::sensors {
namespace {

constexpr std::string_view kPerfEventSensorName = "perf_event";

// Counts start at 0. A working counter changes within a millisecond or two; on some guests events open and stay at 0.
constexpr std::int64_t kFirstCountTimeout_ns = 8 * kNanosecondsPerMillisecond;
constexpr std::int64_t kFirstCountPollPeriod_ns = 200 * kNanosecondsPerMicrosecond;

class PerfEventSensor final : public Sensor {
 public:
  PerfEventSensor(std::vector<FileDescriptor> events, std::vector<Channel> channels)
      : events_(std::move(events)), channels_(std::move(channels)) {}

  std::span<const Channel> channels() const override { return channels_; }

  void read(std::span<Reading> readings, SamplingMode /*mode*/) noexcept override {
    const std::size_t count = std::min(readings.size(), events_.size());
    for (std::size_t i = 0; i < count; ++i) {
      Reading& reading = readings[i];
      reading.before_ns = monotonic_ns();
      const ssize_t read_byte_count = ::read(events_[i].get(), &reading.raw, sizeof reading.raw);
      reading.after_ns = monotonic_ns();
      reading.code = read_byte_count == sizeof reading.raw ? ReadCode::ok
                     : read_byte_count == 0                ? ReadCode::vanished
                                                           : ReadCode::failed;
    }
  }

  // Drops the channels that stay at 0, and returns their sources.
  std::vector<std::string> drop_channels_without_counts() {
    std::vector<Reading> readings(events_.size());
    const std::int64_t deadline_ns = monotonic_ns() + kFirstCountTimeout_ns;
    const auto has_no_count = [](const Reading& reading) { return reading.code != ReadCode::ok || reading.raw == 0; };
    do {
      sleep_until(monotonic_ns() + kFirstCountPollPeriod_ns);
      read(readings, SamplingMode::immediate);
    } while (monotonic_ns() < deadline_ns && std::any_of(readings.begin(), readings.end(), has_no_count));

    std::vector<std::string> channels_without_counts;
    for (std::size_t i = events_.size(); i-- > 0;) {
      if (!has_no_count(readings[i])) continue;
      channels_without_counts.insert(channels_without_counts.begin(), channels_[i].source);
      channels_.erase(channels_.begin() + static_cast<std::ptrdiff_t>(i));
      events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return channels_without_counts;
  }

 private:
  std::vector<FileDescriptor> events_;
  std::vector<Channel> channels_;
};

Result<std::unique_ptr<PerfEventSensor>> open_events(const RaplPmu& pmu, const std::vector<RaplCounter>& counters) {
  std::vector<FileDescriptor> events;
  std::vector<Channel> channels;
  std::optional<Error> first_error;
  for (const RaplCounter& counter : counters) {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = pmu.pmu_type;
    attributes.config = counter.event.config;
    // Uncore events belong to no process: pid -1, and a CPU of the package to count.
    FileDescriptor event(
        static_cast<int>(::syscall(SYS_perf_event_open, &attributes, -1, counter.cpu, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!event.is_open()) {
      if (!first_error) first_error = system_error("perf_event_open", counter.channel.source, errno);
      continue;
    }
    events.push_back(std::move(event));
    channels.push_back(counter.channel);
  }
  if (events.empty() && first_error) return *first_error;
  return std::make_unique<PerfEventSensor>(std::move(events), std::move(channels));
}

std::string read_perf_event_paranoid(const SystemRoot& root) {
  const Result<std::string> text = read_small_file(root.path("/proc/sys/kernel/perf_event_paranoid"));
  return text ? std::string(trim(*text)) : "unknown";
}

ProbeResult make_perf_event_status(SensorState state, std::string reason, std::string remedy) {
  ProbeResult probe;
  probe.status = {.name = std::string(kPerfEventSensorName),
                  .state = state,
                  .reason = std::move(reason),
                  .remedy = std::move(remedy)};
  return probe;
}

}  // namespace

Result<std::unique_ptr<Sensor>> open_rapl_counters(const RaplPmu& pmu, const std::vector<RaplCounter>& counters) {
  Result<std::unique_ptr<PerfEventSensor>> sensor = open_events(pmu, counters);
  if (!sensor) return std::move(sensor).error();
  return std::unique_ptr<Sensor>(std::move(*sensor));
}

ProbeResult probe_perf_event(const ProbeContext& context) {
  if (!context.root().is_this_machine())
    return make_perf_event_status(SensorState::absent, "off with --sysroot: it reads from the kernel, not from files",
                                  "omit --sysroot");
  const Result<RaplPmu> pmu = read_rapl_pmu(context.root());
  const auto make_absent_status = [&](std::string_view observation) {
    return make_perf_event_status(SensorState::absent,
                                  fmt::format("{}: {}", observation, reason_for_absent_rapl(context.host())),
                                  remedy_for_absent_rapl(context.host()));
  };
  if (!pmu && pmu.error().code == ErrorCode::not_found) return make_absent_status("no power PMU");
  if (!pmu)
    return make_perf_event_status(SensorState::absent, pmu.error().message,
                                  "the kernel's file is malformed: update the kernel, or use powercap");
  if (pmu->events.empty()) return make_absent_status("the power PMU has no events");

  Result<std::unique_ptr<PerfEventSensor>> sensor = open_events(*pmu, list_rapl_counters(*pmu, context.root()));
  if (!sensor && sensor.error().code == ErrorCode::permission) {
    return make_perf_event_status(
        SensorState::denied,
        fmt::format("{} (perf_event_paranoid is {})", sensor.error().message, read_perf_event_paranoid(context.root())),
        remedy_for_denied_perf_event(context.host(), context.program_path()));
  }
  if (!sensor)
    return make_perf_event_status(SensorState::absent, sensor.error().message, remedy_for_absent_rapl(context.host()));

  const std::vector<std::string> channels_without_counts = (*sensor)->drop_channels_without_counts();
  if ((*sensor)->channels().empty())
    return make_absent_status(fmt::format("{} opens but stays at 0",
                                          channels_without_counts.empty() ? "RAPL" : channels_without_counts.front()));
  ProbeResult probe =
      make_perf_event_status(SensorState::measured, fmt::format("{} RAPL events", (*sensor)->channels().size()), "");
  for (const std::string& source : channels_without_counts) {
    probe.status.diagnostics.add({"sensor_unreadable", 1, fmt::format("{} opens but stays at 0", source), ""});
  }
  probe.status.channels.assign((*sensor)->channels().begin(), (*sensor)->channels().end());
  probe.sensors.push_back(std::move(*sensor));
  return probe;
}

}  // namespace joulemap::sensors

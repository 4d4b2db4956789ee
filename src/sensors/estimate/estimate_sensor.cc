// SPDX-License-Identifier: Apache-2.0
#include "sensors/estimate/estimate_sensor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/cpu_times.h"
#include "base/small_file.h"
#include "sensors/estimate/machine_description.h"
#include "sensors/estimate/power_model.h"

namespace joulemap::sensors {
namespace {

constexpr std::string_view kEstimateSensorName = "estimate";
constexpr double kJoulesPerRawUnit = 1e-6;

// Power of a channel = idle_power_w + busy_power_w x busy fraction.
struct LinearPowerModel {
  double idle_power_w = 0;
  double busy_power_w = 0;
};

class EstimateSensor final : public Sensor {
 public:
  EstimateSensor(FileDescriptor proc_stat, int threads, std::vector<Channel> channels,
                 std::vector<LinearPowerModel> channel_models)
      : proc_stat_fd_(std::move(proc_stat)),
        machine_busy_s_per_tick_(1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)) / threads),
        channels_(std::move(channels)),
        channel_models_(std::move(channel_models)) {}

  std::span<const Channel> channels() const override { return channels_; }

  void read(std::span<Reading> readings, SamplingMode /*mode*/) noexcept override {
    Reading common_reading;
    common_reading.before_ns = monotonic_ns();
    const std::optional<std::uint64_t> ticks = read_busy_ticks();
    common_reading.after_ns = monotonic_ns();
    common_reading.code = ticks ? ReadCode::ok : ReadCode::failed;
    if (ticks && !start_ns_) {
      start_ns_ = common_reading.time_ns();
      busy_ticks_at_start_ = *ticks;
    }
    const double busy_s = ticks ? busy_time_.busy_s(busy_s_by_ticks(*ticks), common_reading.time_ns()) : 0;
    const std::size_t count = std::min(readings.size(), channel_models_.size());
    for (std::size_t i = 0; i < count; ++i) {
      readings[i] = common_reading;
      if (ticks) readings[i].raw = estimate_energy_uj(channel_models_[i], busy_s, common_reading.time_ns());
    }
  }

 private:
  std::optional<std::uint64_t> read_busy_ticks() noexcept {
    std::array<char, 512> buffer;  // only the first line is needed
    const ssize_t read_byte_count = ::pread(proc_stat_fd_.get(), buffer.data(), buffer.size(), 0);
    if (read_byte_count <= 0) return std::nullopt;
    return parse_busy_ticks({buffer.data(), static_cast<std::size_t>(read_byte_count)});
  }

  // Busy time of the whole machine since the first read, by ticks.
  double busy_s_by_ticks(std::uint64_t ticks) const noexcept {
    return ticks > busy_ticks_at_start_ ? static_cast<double>(ticks - busy_ticks_at_start_) * machine_busy_s_per_tick_
                                        : 0;
  }

  // Energy since the first read = idle power x time + busy power x busy CPU time / number of CPUs.
  std::uint64_t estimate_energy_uj(const LinearPowerModel& law, double busy_s, std::int64_t time_ns) const noexcept {
    const double elapsed_s = seconds(time_ns - *start_ns_);
    return static_cast<std::uint64_t>((law.idle_power_w * elapsed_s + law.busy_power_w * busy_s) / kJoulesPerRawUnit);
  }

  FileDescriptor proc_stat_fd_;
  double machine_busy_s_per_tick_;  // one tick of one CPU, in busy seconds of the whole machine
  std::vector<Channel> channels_;
  std::vector<LinearPowerModel> channel_models_;
  std::optional<std::int64_t> start_ns_;
  std::uint64_t busy_ticks_at_start_ = 0;
  BusyTime busy_time_;
};

Channel make_estimate_channel(std::string domain, DomainClass domain_class, std::string model,
                              double relative_uncertainty) {
  Channel channel;
  channel.name = domain;
  channel.sensor = kEstimateSensorName;
  channel.source = "/proc/stat and a model";
  channel.domain = std::move(domain);
  channel.domain_class = domain_class;
  channel.scale = kJoulesPerRawUnit;
  channel.refresh_s = 0.01;
  channel.provenance = Provenance::estimated;
  channel.model = std::move(model);
  channel.relative_uncertainty = relative_uncertainty;
  return channel;
}

}  // namespace

ProbeResult probe_estimate(const ProbeContext& context) {
  ProbeResult probe;
  probe.status.name = kEstimateSensorName;
  const std::string path = context.root().path("/proc/stat");
  const Result<MachineCpuTime> time = read_machine_cpu_time(context.root());
  Result<FileDescriptor> proc_stat = open_for_reading(path);
  if (!time || !proc_stat) {
    probe.status.reason =
        fmt::format("the model needs {}: {}", path, time ? proc_stat.error().message : time.error().message);
    probe.status.remedy = "mount /proc";
    return probe;
  }
  const MachineDescription machine = describe_machine(context.root(), time->cpus);
  std::vector<Channel> channels;
  std::vector<LinearPowerModel> channel_models;
  const std::vector<PackageModel> packages = make_package_models(machine);
  for (std::size_t i = 0; i < packages.size(); ++i) {
    const PackageModel& model = packages[i];
    channels.push_back(make_estimate_channel(fmt::format("package-{}", i), DomainClass::cpu, model.formula,
                                             model.relative_uncertainty));
    channels.back().uncertainty_w = model.uncertainty_w;
    channel_models.push_back({kIdlePowerFraction * model.limit_w, kBusyPowerFraction * model.limit_w});
  }
  if (const std::optional<MemoryModel> memory = make_memory_model(machine)) {
    for (std::size_t i = 0; i < packages.size(); ++i) {
      channels.push_back(make_estimate_channel(fmt::format("dram-{}", i), DomainClass::memory, memory->formula,
                                               memory->relative_uncertainty));
      channel_models.push_back({memory->power_w, 0});
    }
  }
  probe.status.state = SensorState::estimated;
  probe.status.reason =
      fmt::format("package: {}{}{}", packages.front().formula, channels.size() > packages.size() ? "; dram: " : "",
                  channels.size() > packages.size() ? channels.back().model : "");
  probe.status.channels = channels;
  probe.sensors.push_back(std::make_unique<EstimateSensor>(std::move(*proc_stat), time->cpus, std::move(channels),
                                                           std::move(channel_models)));
  return probe;
}

}  // namespace joulemap::sensors

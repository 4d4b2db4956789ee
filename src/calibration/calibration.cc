// SPDX-License-Identifier: Apache-2.0
#include "calibration/calibration.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "calibration/load_findings.h"
#include "calibration/published_values.h"
#include "energy/channel_behaviour.h"

namespace joulemap::calibration {
namespace {

constexpr std::int64_t kSampleDrainPeriod_ns = 5 * kNanosecondsPerMillisecond;
// GPU utilization in %, from which on the GPU is not idle.
constexpr double kMinBusyUtilization_percent = 5;

// Version of the software for which a calibration of the channel is valid: its driver, otherwise the kernel.
std::string driver_or_kernel_version(const Channel& channel) {
  if (!channel.driver.empty()) return channel.driver;
  utsname system{};
  return ::uname(&system) == 0 ? fmt::format("Linux {}", system.release) : std::string();
}

// CPU time per wall time of a sensor's reads, at most 1. Times the read duration of a channel, it gives the CPU cost of
// that channel.
double cpu_time_per_read_time(const sampling::Sampler& sampler, std::size_t sensor,
                              const std::vector<ChannelBehaviour>& channel_behaviours,
                              const std::vector<SamplerCost>& costs) {
  const auto [first_channel, count] = sampler.channels_of(sensor);
  double wall_s = 0;
  for (std::size_t i = first_channel; i < first_channel + count; ++i)
    wall_s += channel_behaviours[i].total_read_duration_s();
  return wall_s > 0 ? std::min(seconds(costs[sensor].cpu_ns) / wall_s, 1.0) : 1.0;
}

// Sets the phase of every regularly updated channel, in s after an update of the first such channel of its device.
void set_channel_phases(const std::vector<Channel>& channels, const std::vector<ChannelBehaviour>& channel_behaviours,
                        std::int64_t at_ns, std::vector<ChannelCalibration>& findings) {
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const auto step = channel_behaviours[i].update_before(at_ns);
    if (!step || channels[i].device.empty()) continue;
    for (std::size_t k = 0; k < i; ++k) {
      const auto reference = channel_behaviours[k].update_before(at_ns);
      if (!reference || channels[k].device != channels[i].device) continue;
      const double period_s = channel_behaviours[k].update_timing()->period_s;
      double phase_s = seconds(step->midpoint_ns() - reference->midpoint_ns());
      phase_s -= period_s * std::floor(phase_s / period_s);
      findings[i].phase_s = phase_s;
      findings[i].phase_reference_channel = channels[k].name;
      break;
    }
  }
}

// Whether the response of the channel to a load is measured: only if it covers the power of a whole GPU.
bool is_whole_gpu_power(const Channel& channel) {
  const bool measures_power = measures_energy_or_power(channel) || channel.quantity == Quantity::power_history;
  return measures_power && channel.domain_class == DomainClass::gpu && channel.part_of.empty() &&
         channel.provenance == Provenance::measured;
}

class CalibrationRun {
 public:
  CalibrationRun(sampling::Sampler& sampler, const CalibrationOptions& options)
      : sampler_(sampler), options_(options), run_begin_ns_(monotonic_ns()) {
    result_.channels.assign(sampler.channels().begin(), sampler.channels().end());
    for (const Channel& channel : result_.channels) channel_behaviours_.emplace_back(channel);
    last_readings_.resize(channel_behaviours_.size());
    readings_under_load_.resize(channel_behaviours_.size());
    idle_w_.resize(channel_behaviours_.size());
  }

  CalibrateResult run() {
    sampler_.set_mode(sensors::SamplingMode::near_edge);
    sampler_.start();
    drain_samples_until(run_begin_ns_ + options_.idle_duration_ns);
    idle_span_ = {run_begin_ns_, monotonic_ns()};
    for (std::size_t i = 0; i < channel_behaviours_.size(); ++i) idle_w_[i] = channel_behaviours_[i].mean_power_w();
    const std::vector<std::string> busy = find_busy_devices();
    std::vector<std::pair<std::string, LoadPhases>> load_phases_by_device;
    if (options_.is_gpu_load_enabled) load_phases_by_device = run_load_on_idle_gpus(busy);
    sampler_.stop();
    const std::int64_t end_ns = monotonic_ns();
    result_.observation_time_s = seconds(end_ns - run_begin_ns_);
    result_.samplers = sampler_.costs();
    for (std::size_t sensor = 0; sensor < sampler_.sensor_count(); ++sensor) add_sensor_findings(sensor);
    set_channel_phases(result_.channels, channel_behaviours_, end_ns, result_.findings);
    for (const auto& [device, phases] : load_phases_by_device) add_device_load_findings(device, phases);
    return std::move(result_);
  }

 private:
  void report_progress_by_time() const {
    const auto& load = options_.square_wave_plan;
    const std::int64_t gpu_load_duration_ns = load.active_idle_ns + load.total_waves_ns + load.full_load_ns +
                                              load.idle_after_load_ns + load.idle_after_release_ns;
    const std::int64_t loads =
        options_.is_gpu_load_enabled ? static_cast<std::int64_t>(find_first_gpu_channels().size()) : 0;
    report_progress(options_.on_progress,
                    static_cast<double>(monotonic_ns() - run_begin_ns_) /
                        static_cast<double>(options_.idle_duration_ns + loads * gpu_load_duration_ns));
  }

  void drain_samples_until(std::int64_t until_ns) {
    while (monotonic_ns() < until_ns) {
      report_progress_by_time();
      sleep_until(std::min(monotonic_ns() + kSampleDrainPeriod_ns, until_ns));
      sampler_.drain([&](const Sample& sample) {
        channel_behaviours_[sample.channel].observe(sample.reading);
        last_readings_[sample.channel] = sample.reading;
        const bool is_valid_reading = sample.reading.code == ReadCode::ok;
        if (is_valid_reading && is_whole_gpu_power(result_.channels[sample.channel]))
          readings_under_load_[sample.channel].push_back(sample.reading);
      });
    }
  }

  // Devices that were busy at their last reading, because other processes use them.
  std::vector<std::string> find_busy_devices() {
    std::vector<std::string> busy;
    for (std::size_t i = 0; i < result_.channels.size(); ++i) {
      const Channel& channel = result_.channels[i];
      const double value = static_cast<double>(last_readings_[i].raw) * channel.scale;
      if (channel.quantity != Quantity::utilization || last_readings_[i].code != ReadCode::ok ||
          value < kMinBusyUtilization_percent)
        continue;
      busy.push_back(channel.device);
      result_.diagnostics.add({"not_idle", 1,
                               fmt::format("{} was {:.0f} % busy: its idle power is too high", channel.domain, value),
                               "calibrate while nothing else runs"});
    }
    return busy;
  }

  void diagnose_gpu_not_loaded(const std::string& domain, const std::string& reason, const std::string& remedy) {
    result_.diagnostics.add({"gpu_not_loaded", 1,
                             fmt::format("{} was not loaded, its sensor latency is unknown: {}", domain, reason),
                             remedy});
  }

  // Each GPU once, by its first channel.
  std::vector<const Channel*> find_first_gpu_channels() const {
    std::vector<const Channel*> gpu_channels;
    for (const Channel& channel : result_.channels) {
      const auto is_same_gpu = [&](const Channel* gpu_channel) { return gpu_channel->device == channel.device; };
      if (is_whole_gpu_power(channel) && std::none_of(gpu_channels.begin(), gpu_channels.end(), is_same_gpu))
        gpu_channels.push_back(&channel);
    }
    return gpu_channels;
  }

  // Loads each GPU that is idle, one after another. Returns the load phases by device.
  std::vector<std::pair<std::string, LoadPhases>> run_load_on_idle_gpus(const std::vector<std::string>& busy) {
    std::vector<std::pair<std::string, LoadPhases>> load_phases_by_device;
    std::optional<Result<calibration::CudaDriver>> driver;
    for (const Channel* gpu : find_first_gpu_channels()) {
      if (gpu->sensor != "nvml") {
        diagnose_gpu_not_loaded(gpu->domain, "only NVIDIA GPUs can be loaded", {});
      } else if (std::find(busy.begin(), busy.end(), gpu->device) != busy.end()) {
        diagnose_gpu_not_loaded(gpu->domain, "other processes run on it", "calibrate while nothing else runs");
      } else {
        if (!driver) driver.emplace(calibration::CudaDriver::load(options_.cuda_library));
        if (!*driver) {
          diagnose_gpu_not_loaded(gpu->domain, driver->error().message, driver->error().remedy);
          continue;
        }
        Result<LoadPhases> phases =
            calibration::run_square_waves(**driver, gpu->device, options_.square_wave_plan,
                                          [this](std::int64_t until_ns) { drain_samples_until(until_ns); });
        if (!phases) {
          diagnose_gpu_not_loaded(gpu->domain, phases.error().message, phases.error().remedy);
          continue;
        }
        phases->idle = idle_span_;
        result_.loaded_domains.push_back(gpu->domain);
        load_phases_by_device.emplace_back(gpu->device, std::move(*phases));
      }
    }
    return load_phases_by_device;
  }

  void add_sensor_findings(std::size_t sensor) {
    const double cpu_share = cpu_time_per_read_time(sampler_, sensor, channel_behaviours_, result_.samplers);
    const auto [first_channel, count] = sampler_.channels_of(sensor);
    for (std::size_t i = first_channel; i < first_channel + count; ++i) {
      ChannelCalibration finding;
      finding.channel = result_.channels[i].name;
      finding.device = result_.channels[i].device;
      finding.driver = driver_or_kernel_version(result_.channels[i]);
      if (const auto update_timing = channel_behaviours_[i].update_timing()) {
        finding.refresh_s = update_timing->period_s;
        finding.refresh_spread_s = update_timing->period_uncertainty_s;
      }
      finding.read_wall_s = channel_behaviours_[i].median_read_duration_s();
      if (finding.read_wall_s) finding.read_cpu_s = *finding.read_wall_s * cpu_share;
      if (result_.channels[i].provenance == Provenance::measured) finding.idle_w = idle_w_[i];
      finding.created_unix_ns = unix_ns();
      result_.findings.push_back(std::move(finding));
    }
  }

  void add_device_load_findings(const std::string& device, const LoadPhases& phases) {
    std::vector<GpuLoadChannel> gpu_load_channels;
    for (std::size_t i = 0; i < result_.channels.size(); ++i) {
      const Channel& channel = result_.channels[i];
      if (!is_whole_gpu_power(channel) || channel.device != device) continue;
      PublishedValues published_values = make_published_values(channel, readings_under_load_[i]);
      gpu_load_channels.push_back(
          {channel, std::move(published_values.values), published_values.time_uncertainty_s, &result_.findings[i]});
    }
    add_load_findings(gpu_load_channels, phases, result_.diagnostics);
  }

  sampling::Sampler& sampler_;
  const CalibrationOptions& options_;
  std::int64_t run_begin_ns_;
  LoadSpan idle_span_;
  CalibrateResult result_;
  std::vector<ChannelBehaviour> channel_behaviours_;
  std::vector<Reading> last_readings_;
  std::vector<std::vector<Reading>> readings_under_load_;  // by channel; empty unless is_whole_gpu_power(channel)
  std::vector<std::optional<double>> idle_w_;
};

}  // namespace

CalibrateResult calibrate(sampling::Sampler& sampler, const CalibrationOptions& options) {
  return CalibrationRun(sampler, options).run();
}

}  // namespace joulemap::calibration

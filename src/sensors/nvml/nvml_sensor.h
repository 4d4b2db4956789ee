// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA GPUs through NVML: one sensor for each GPU that CUDA_VISIBLE_DEVICES leaves visible, each with its own thread,
// so that a slow or lost GPU does not delay the others.
//
//   gpuN-energy         counter, mJ: the reported energy         gpuN-power-instant    gauge, the last 25 ms: a check
//   gpuN-power-average  gauge, the last second: a check          gpuN-memory-power     gauge, part of gpuN
//   limit, clocks, temperature, utilisation, memory, throttling  additional gauges, every second
//   gpuN-others-utilization  gauge, since its last read: use by processes that are not measured
//
// Both powers are cross-checks of the counter and never replace it. A mean over a second lags at the edges of a window;
// EnergyCurve adds that to the uncertainty, so that short runs cause no false disagreement. On a GPU without an energy
// counter the instant power is integrated, and a diagnostic reports it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sensors/nvml/nvml_device.h"
#include "sensors/nvml/nvml_read_schedule.h"
#include "sensors/nvml/other_processes.h"
#include "sensors/nvml/power_history.h"
#include "sensors/sensor.h"

namespace joulemap::sensors {

ProbeResult probe_nvml(const ProbeContext& context);

namespace nvml {

class NvmlSensor final : public Sensor {
 public:
  // `metrics`: the metrics that this device supports, in the order of GpuMetric. `others`: set where `metrics` includes
  // other_processes_utilization.
  NvmlSensor(NvmlDevice device, std::vector<GpuMetric> metrics, std::optional<OtherProcesses> others = {});

  std::span<const Channel> channels() const override { return channels_; }
  void read(std::span<Reading> readings, SamplingMode mode) noexcept override;
  std::span<const Sample> history() const noexcept override;
  std::int64_t next_read_ns(std::int64_t last_ns, SamplingMode mode) const noexcept override;

  const UpdateTimeEstimator& counter_update_estimator() const { return counter_schedule_.update_clock(); }
  const UpdateTimeEstimator& power_update_estimator() const { return power_schedule_.update_clock(); }

 private:
  void read_powers(std::span<Reading> readings) noexcept;
  void read_counter(Reading& reading, SamplingMode mode) noexcept;
  void read_other_processes(Reading& reading) noexcept;
  void read_slow_metrics(std::span<Reading> readings, bool is_immediate) noexcept;

  NvmlDevice device_;
  std::optional<OtherProcesses> other_processes_;
  std::vector<GpuMetric> metrics_;
  std::vector<Channel> channels_;
  // Indices among the channels: the energy counter is channel 0, then come the powers, then the slow metrics.
  bool has_energy_counter_ = false;
  std::size_t first_power_channel_ = 0;
  std::size_t first_slow_channel_ = 0;
  std::size_t tracked_power_channel_ =
      0;  // the power whose update times are tracked: the average, if supported, changes at nearly every update

  CounterReadSchedule counter_schedule_;
  PowerReadSchedule power_schedule_;
  std::optional<PowerHistory> power_history_;  // values of the last channel
  std::int64_t next_slow_read_ns_ = 0;
  std::int64_t last_read_end_ns_ = 0;
};

}  // namespace nvml
}  // namespace joulemap::sensors

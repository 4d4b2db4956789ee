// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA GPUs through NVML: one sensor for each GPU that CUDA_VISIBLE_DEVICES leaves visible, so that each has a thread
// of its own and a GPU that is slow, or gone, does not hold up the others.
//
//   gpuN-energy         counter, mJ: what is reported            gpuN-power-instant    gauge, the last 25 ms: a check
//   gpuN-power-average  gauge, the last second: a check          gpuN-memory-power     gauge, part of gpuN
//   limit, clocks, temperature, utilisation, memory, throttling  shown beside them, every second
//   gpuN-others-utilization  gauge, since it was read last: what processes use that are not measured
//
// Both powers of the GPU watch its domain. They are checks of the counter and never beat it; a mean over a second lags at
// the edges of a window, which EnergyCurve puts into its uncertainty, so that short runs raise no false alarm.
// Without a counter the instant power is integrated, and a diagnostic says so.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sensors/nvml/nvml_device.h"
#include "sensors/nvml/nvml_pace.h"
#include "sensors/nvml/other_processes.h"
#include "sensors/nvml/power_history.h"
#include "sensors/sensor.h"

namespace joulemap::sensors {

Probe probe_nvml(const ProbeContext& context);

namespace nvml {

class NvmlSensor final : public Sensor {
 public:
  // `metrics`: those that work on this device, in the order of Metric.
  // `others`: where the metrics have others_utilization.
  NvmlSensor(NvmlDevice device, std::vector<Metric> metrics, std::optional<OtherProcesses> others = {});

  std::span<const Channel> channels() const override { return channels_; }
  void read(std::span<Reading> readings, Attention attention) noexcept override;
  std::span<const Sample> history() const noexcept override;
  std::int64_t next_read_ns(std::int64_t last_ns, Attention attention) const noexcept override;

  const StepClock& counter_clock() const { return counter_pace_.clock(); }
  const StepClock& power_clock() const { return power_pace_.clock(); }

 private:
  void read_powers(std::span<Reading> readings) noexcept;
  void read_counter(Reading& reading, Attention attention) noexcept;
  void read_others(Reading& reading) noexcept;
  void read_slow_ones(std::span<Reading> readings, bool all) noexcept;

  NvmlDevice device_;
  std::optional<OtherProcesses> others_;
  std::vector<Metric> metrics_;
  std::vector<Channel> channels_;
  // Where they stand among the channels.
  bool has_counter_ = false;  // the first
  std::size_t first_power_ = 0;
  std::size_t first_slow_ = 0;
  std::size_t clocked_power_ = 0;  // the power whose steps are followed: the average changes at nearly every one

  CounterPace counter_pace_;
  PowerPace power_pace_;
  std::optional<PowerHistory> history_;  // of the last channel
  std::int64_t slow_due_ns_ = 0;
  std::int64_t last_end_ns_ = 0;
};

}  // namespace nvml
}  // namespace joulemap::sensors

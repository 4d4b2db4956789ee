// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/nvml_sensor.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/clock.h"
#include "base/fork_gate.h"

namespace joulemap::sensors::nvml {
namespace {

constexpr std::int64_t kSlowMetricPeriod_ns = kNanosecondsPerSecond;
constexpr std::int64_t kNvmlRetryPeriod_ns = kNanosecondsPerSecond;
constexpr std::int64_t kMinPauseBetweenReads_ns = 50 * kNanosecondsPerMicrosecond;
constexpr std::size_t kMaxPowerChannels = 4;

Reading make_reading(const RawReadResult& read, std::int64_t before_ns, std::int64_t after_ns) {
  return {read.raw, before_ns, after_ns, to_read_code(read.status)};
}

Reading make_skipped_reading() {
  Reading reading;
  reading.code = ReadCode::skipped;
  return reading;
}

}  // namespace

NvmlSensor::NvmlSensor(NvmlDevice device, std::vector<GpuMetric> metrics, std::optional<OtherProcesses> others)
    : device_(std::move(device)), other_processes_(std::move(others)), metrics_(std::move(metrics)) {
  JOULEMAP_CHECK(std::is_sorted(metrics_.begin(), metrics_.end()), "metrics are listed in their order");
  channels_.reserve(metrics_.size());
  for (const GpuMetric metric : metrics_) channels_.push_back(device_.make_metric_channel(metric));
  if (!metrics_.empty() && metrics_.back() == GpuMetric::power_history) {
    power_history_.emplace(static_cast<std::uint32_t>(metrics_.size() - 1));
    metrics_.pop_back();
  }
  has_energy_counter_ = !metrics_.empty() && metrics_.front() == GpuMetric::energy;
  first_power_channel_ = has_energy_counter_ ? 1 : 0;
  first_slow_channel_ = first_power_channel_;
  tracked_power_channel_ = first_power_channel_;
  while (first_slow_channel_ < metrics_.size() && is_power_metric(metrics_[first_slow_channel_])) {
    const bool is_average = metrics_[first_slow_channel_] == GpuMetric::power_average ||
                            metrics_[first_slow_channel_] == GpuMetric::power_usage;
    if (is_average) tracked_power_channel_ = first_slow_channel_;
    ++first_slow_channel_;
  }
  JOULEMAP_CHECK(first_slow_channel_ - first_power_channel_ <= kMaxPowerChannels, "more powers than there are");
}

void NvmlSensor::read_powers(std::span<Reading> readings) noexcept {
  const std::size_t count = first_slow_channel_ - first_power_channel_;
  std::array<RawReadResult, kMaxPowerChannels> reads;
  const std::int64_t before_ns = monotonic_ns();
  device_.read_powers(std::span(metrics_).subspan(first_power_channel_, count), std::span(reads).first(count));
  const std::int64_t after_ns = monotonic_ns();
  bool has_good_read = false;
  for (std::size_t i = 0; i < count; ++i) {
    readings[first_power_channel_ + i] = make_reading(reads[i], before_ns, after_ns);
    has_good_read = has_good_read || reads[i].status == NvmlReturn::success;
  }
  const RawReadResult& tracked_power_read = reads[tracked_power_channel_ - first_power_channel_];
  if (tracked_power_read.status == NvmlReturn::success) {
    power_schedule_.add_read(before_ns, after_ns, tracked_power_read.raw);
    counter_schedule_.suggest_period(power_schedule_.update_clock());
  } else if (!has_good_read) {
    power_schedule_.add_failed_read(after_ns);
  }
}

void NvmlSensor::read_counter(Reading& reading, SamplingMode mode) noexcept {
  const std::int64_t cpu_before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  const std::int64_t before_ns = monotonic_ns();
  const RawReadResult read = device_.read(GpuMetric::energy);
  const std::int64_t after_ns = monotonic_ns();
  const std::int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_before_ns;
  reading = make_reading(read, before_ns, after_ns);
  if (reading.code == ReadCode::ok) {
    counter_schedule_.add_read(before_ns, after_ns, cpu_ns, read.raw, mode);
  } else {
    counter_schedule_.add_failed_read(after_ns);
  }
}

void NvmlSensor::read_other_processes(Reading& reading) noexcept {
  const std::int64_t before_ns = monotonic_ns();
  if (const std::optional<RawReadResult> read = other_processes_->read_utilization(device_))
    reading = make_reading(*read, before_ns, monotonic_ns());
}

void NvmlSensor::read_slow_metrics(std::span<Reading> readings, bool is_immediate) noexcept {
  bool has_good_read = false;
  for (std::size_t i = first_slow_channel_; i < metrics_.size(); ++i) {
    const std::int64_t before_ns = monotonic_ns();
    if (metrics_[i] == GpuMetric::other_processes_utilization) {
      if (other_processes_ && other_processes_->is_read_due(before_ns, is_immediate)) read_other_processes(readings[i]);
      continue;
    }
    const RawReadResult read = device_.read(metrics_[i]);
    readings[i] = make_reading(read, before_ns, monotonic_ns());
    has_good_read = has_good_read || read.status == NvmlReturn::success;
  }
  const std::int64_t read_period_ns = std::max(kSlowMetricPeriod_ns, requested_read_period_ns_.value_or(0));
  next_slow_read_ns_ =
      monotonic_ns() + (has_good_read ? read_period_ns : std::max(read_period_ns, kNvmlRetryPeriod_ns));
}

void NvmlSensor::read(std::span<Reading> readings, SamplingMode mode) noexcept {
  JOULEMAP_CHECK(readings.size() >= channels_.size(), "one reading for each channel");
  const ForkGate::ScopedGateEntry inside(nvml_fork_gate);
  std::fill(readings.begin(), readings.end(), make_skipped_reading());
  if (power_history_) power_history_->clear();
  const bool is_immediate = mode == SamplingMode::immediate;
  const std::int64_t now_ns = monotonic_ns();
  const bool is_counter_read_due =
      has_energy_counter_ &&
      (is_immediate || counter_schedule_.next_read_ns(mode, requested_read_period_ns_) <= now_ns);
  // Powers first: their reads take microseconds, while a read of the counter takes milliseconds and would delay them.
  if (first_slow_channel_ > first_power_channel_ &&
      (is_immediate || power_schedule_.next_read_ns(mode, requested_read_period_ns_) <= now_ns))
    read_powers(readings);
  if (is_counter_read_due) read_counter(readings[0], mode);
  if (is_immediate || (!is_counter_read_due && next_slow_read_ns_ <= now_ns)) read_slow_metrics(readings, is_immediate);
  if (power_history_ && (is_immediate || (!is_counter_read_due && power_history_->is_read_due(now_ns))))
    power_history_->read(device_);
  last_read_end_ns_ = monotonic_ns();
}

std::span<const Sample> NvmlSensor::history() const noexcept {
  return power_history_ ? power_history_->samples() : std::span<const Sample>();
}

std::int64_t NvmlSensor::next_read_ns(std::int64_t last_ns, SamplingMode mode) const noexcept {
  std::int64_t next_ns = std::max(next_slow_read_ns_, last_ns);
  if (first_slow_channel_ > first_power_channel_)
    next_ns = std::min(next_ns, power_schedule_.next_read_ns(mode, requested_read_period_ns_));
  if (power_history_) next_ns = std::min(next_ns, power_history_->next_read_ns());
  if (has_energy_counter_) next_ns = std::min(next_ns, counter_schedule_.next_read_ns(mode, requested_read_period_ns_));
  return std::max({next_ns, last_ns + kMinPauseBetweenReads_ns, last_read_end_ns_ + kMinPauseBetweenReads_ns});
}

}  // namespace joulemap::sensors::nvml

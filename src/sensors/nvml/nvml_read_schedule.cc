// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/nvml_read_schedule.h"

#include <algorithm>
#include <array>

#include "base/clock.h"

namespace joulemap::sensors::nvml {
namespace {

constexpr std::int64_t kPauseBetweenReads_ns =
    kNanosecondsPerMillisecond;  // between two reads of the counter, so that other threads can use the driver
// Between two reads near an edge while update times are unknown: a read spins, and a resolution of a few hundredths of
// a second suffices.
constexpr std::int64_t kNearEdgeSearchPause_ns = 5 * kNanosecondsPerMillisecond;
constexpr std::int64_t kUpdateSearchPeriod_ns =
    2 * kNanosecondsPerMillisecond;                                  // between reads while the update period is unknown
constexpr std::int64_t kReadRetryPeriod_ns = kNanosecondsPerSecond;  // between reads after a failed one
constexpr std::int64_t kMaxTimeBetweenReads_ns = 10 * kNanosecondsPerSecond;
constexpr std::int64_t kDefaultPowerReadPeriod_ns = 10 * kNanosecondsPerMillisecond;
constexpr std::int64_t kNearEdgePowerReadPeriod_ns = kNanosecondsPerMillisecond;
// How long powers are polled quickly to find their updates before falling back to the default period.
constexpr std::int64_t kPowerUpdateSearchTimeout_ns = kNanosecondsPerSecond;
constexpr std::int64_t kMinReadPeriod_ns = kNanosecondsPerMillisecond / 10;
constexpr std::int64_t kMaxPreciseUpdateHalfWidth_ns = kNanosecondsPerMillisecond;

// On an H200 (driver 580) a read that begins within 15 ms after an update takes 15 to 30 ms. One that begins a third of
// the period later takes 3 ms. Every fifth of the period, and longest after an update, the firmware is busy with its
// sensors.
constexpr double kCheapestReadPhase = 0.35;
// While update times are not known precisely, one of this many reads locates an update; the others read the energy
// where that is cheapest.
constexpr unsigned kReadsPerUpdateLocation = 2;

// Reads per update period while the period is known but not its phase: sooner or later two of them enclose an update
// closely enough to find the phase.
constexpr std::int64_t kSearchReadsPerPeriod = 3;
constexpr int kMaxUpdateSearchReads = 5;

// Exponential moving average over about the last eight values.
std::int64_t update_moving_average(std::int64_t mean, std::int64_t value) { return mean + (value - mean) / 8; }

bool is_between_edges_mode(SamplingMode mode) {
  return mode == SamplingMode::relaxed || mode == SamplingMode::every_update;
}

}  // namespace

void CounterReadSchedule::add_read(std::int64_t before_ns, std::int64_t after_ns, std::int64_t cpu_ns,
                                   std::uint64_t raw_value, SamplingMode mode) noexcept {
  const std::int64_t wall_ns = after_ns - before_ns;
  mean_cpu_ns_ = has_read_ ? update_moving_average(mean_cpu_ns_, cpu_ns) : cpu_ns;
  mean_read_ns_ = has_read_ ? update_moving_average(mean_read_ns_, std::min(wall_ns, 2 * mean_read_ns_)) : wall_ns;
  ++read_count_;
  max_usual_read_ns_ = std::max(wall_ns, update_moving_average(max_usual_read_ns_, mean_read_ns_));
  const bool is_phase_unknown = update_clock_.has_period() && !update_clock_.is_locked();
  update_search_read_count_ =
      is_between_edges_mode(mode) && is_phase_unknown ? (update_search_read_count_ + 1) % kMaxUpdateSearchReads : 0;
  update_clock_.observe(before_ns, after_ns, raw_value);
  has_read_ = true;
  has_last_read_failed_ = false;
  last_read_begin_ns_ = before_ns;
  last_read_end_ns_ = after_ns;
  // Only relaxed reads add up against kCounterReadCpuFraction: other modes were requested at any cost.
  const std::int64_t interval_begin_ns =
      mode == SamplingMode::relaxed ? std::max(next_affordable_read_ns_, before_ns) : before_ns;
  const auto min_read_interval_ns =
      static_cast<std::int64_t>(static_cast<double>(mean_cpu_ns_) / kCounterReadCpuFraction);
  next_affordable_read_ns_ = std::min(interval_begin_ns + min_read_interval_ns, before_ns + kMaxTimeBetweenReads_ns);
}

void CounterReadSchedule::add_failed_read(std::int64_t after_ns) noexcept {
  has_last_read_failed_ = true;
  last_read_end_ns_ = after_ns;
}

void CounterReadSchedule::suggest_period(const UpdateTimeEstimator& other_estimator) noexcept {
  const std::optional<UpdatePeriod> shared_period = other_estimator.shareable_period();
  if (shared_period) update_clock_.suggest_period(shared_period->period_ns, shared_period->tolerance_ns);
}

std::int64_t CounterReadSchedule::next_read_ns(SamplingMode mode,
                                               std::optional<std::int64_t> requested_ns) const noexcept {
  if (has_last_read_failed_) return last_read_end_ns_ + kReadRetryPeriod_ns;
  if (!has_read_) return 0;
  if (!is_between_edges_mode(mode)) return next_near_edge_read_ns();
  if (mode == SamplingMode::every_update) return next_relaxed_read_ns(last_read_begin_ns_ + kMinReadPeriod_ns);
  if (!requested_ns) return next_relaxed_read_ns(next_affordable_read_ns_);
  return next_relaxed_read_ns(last_read_begin_ns_ + std::max(*requested_ns, kMinReadPeriod_ns));
}

// Half width, in ns, up to which the time of an update counts as precise.
std::int64_t CounterReadSchedule::cheapest_read_ns(const UpdateInterval& step) const {
  return step.latest_ns + static_cast<std::int64_t>(kCheapestReadPhase * update_clock_.period_ns());
}

// A read at the midpoint of an update's uncertainty interval halves it, whatever its result.
std::int64_t CounterReadSchedule::uncertainty_midpoint_ns(const UpdateInterval& step) const {
  return step.midpoint_ns() - std::min(mean_read_ns_, kNvmlLatchDelay_ns) / 2;
}

std::int64_t CounterReadSchedule::next_near_edge_read_ns() const noexcept {
  if (!update_clock_.is_locked()) return last_read_end_ns_ + kNearEdgeSearchPause_ns;
  const std::int64_t earliest_read_ns = last_read_end_ns_ + kMinReadPeriod_ns;
  // The first update that the last read may have missed: read before it, within it while its time is uncertain, and
  // after it.
  const UpdateInterval step = update_clock_.next_update_after(last_read_begin_ns_);
  const bool is_precise = step.half_width_ns() <= kMaxPreciseUpdateHalfWidth_ns;
  const std::array<std::int64_t, 3> moments = {step.earliest_ns - max_usual_read_ns_,
                                               step.midpoint_ns() - mean_read_ns_ / 2, step.latest_ns};
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (i == 1 && is_precise) continue;
    if (moments[i] > last_read_begin_ns_ + mean_read_ns_ / 2) return std::max(moments[i], earliest_read_ns);
  }
  return std::max(step.latest_ns, earliest_read_ns);
}

std::int64_t CounterReadSchedule::next_relaxed_read_ns(std::int64_t next_affordable_read_ns) const noexcept {
  const std::int64_t earliest_read_ns = last_read_end_ns_ + kPauseBetweenReads_ns;
  if (!update_clock_.has_period())
    return std::max({earliest_read_ns, next_affordable_read_ns, last_read_begin_ns_ + kUpdateSearchPeriod_ns});
  const auto period_ns = static_cast<std::int64_t>(update_clock_.period_ns());
  if (!update_clock_.is_locked()) {
    return std::max(earliest_read_ns, update_search_read_count_ > 0
                                          ? last_read_begin_ns_ + period_ns / kSearchReadsPerPeriod
                                          : next_affordable_read_ns);
  }
  // Locating an update takes a pair of reads: only a second read within the same period shows whether the first one saw
  // it.
  const UpdateInterval pending_update = update_clock_.next_update_after(last_read_begin_ns_);
  if (last_read_end_ns_ > pending_update.earliest_ns)
    return std::max(cheapest_read_ns(pending_update), earliest_read_ns);
  UpdateInterval step = update_clock_.next_update_after(std::max(next_affordable_read_ns, earliest_read_ns));
  // If the next affordable update would be too uncertain, read an earlier one: that is cheaper than losing the phase
  // and searching for it again.
  if (step.width_ns() > period_ns / 2) step = update_clock_.next_update_after(earliest_read_ns + mean_read_ns_);
  const bool locates_update =
      step.half_width_ns() > kMaxPreciseUpdateHalfWidth_ns && read_count_ % kReadsPerUpdateLocation == 0;
  return std::max(locates_update ? uncertainty_midpoint_ns(step) : cheapest_read_ns(step), earliest_read_ns);
}

void PowerReadSchedule::add_read(std::int64_t before_ns, std::int64_t after_ns, std::uint64_t raw_value) noexcept {
  if (!has_read_) first_read_ns_ = before_ns;
  has_read_ = true;
  has_last_read_failed_ = false;
  last_read_begin_ns_ = before_ns;
  update_clock_.observe(before_ns, after_ns, raw_value);
}

void PowerReadSchedule::add_failed_read(std::int64_t after_ns) noexcept {
  has_last_read_failed_ = true;
  last_read_begin_ns_ = after_ns;
}

std::int64_t PowerReadSchedule::next_read_ns(SamplingMode mode,
                                             std::optional<std::int64_t> requested_ns) const noexcept {
  if (has_last_read_failed_) return last_read_begin_ns_ + kReadRetryPeriod_ns;
  if (!has_read_) return 0;
  if (!is_between_edges_mode(mode)) return last_read_begin_ns_ + kNearEdgePowerReadPeriod_ns;
  const std::int64_t requested_period_ns =
      std::max(requested_ns.value_or(kDefaultPowerReadPeriod_ns), kMinReadPeriod_ns);
  if (!update_clock_.is_locked()) {
    const bool is_searching = !requested_ns && last_read_begin_ns_ < first_read_ns_ + kPowerUpdateSearchTimeout_ns;
    return last_read_begin_ns_ + (is_searching ? kUpdateSearchPeriod_ns : requested_period_ns);
  }
  const auto period_ns = static_cast<std::int64_t>(update_clock_.period_ns());
  if (requested_ns && requested_period_ns > period_ns / 2) return last_read_begin_ns_ + requested_period_ns;
  // Values do not change between updates; a few polls there guard against a wrong clock.
  const std::int64_t guard_read_ns =
      last_read_begin_ns_ + std::max(requested_period_ns, requested_ns ? 0 : period_ns / 4);
  const UpdateInterval step = update_clock_.next_update_after(last_read_begin_ns_);
  const bool is_before_midpoint =
      last_read_begin_ns_ < step.midpoint_ns() && step.half_width_ns() > kMinReadPeriod_ns * 2;
  return std::min(guard_read_ns, is_before_midpoint ? step.midpoint_ns() : step.latest_ns);
}

}  // namespace joulemap::sensors::nvml

// SPDX-License-Identifier: Apache-2.0
//
// UpdateTimeEstimator: finds the update times of a value with a regular update period, only from reads of the value,
// each with a duration. Pure: reads come in order of time; it reads no system clock and does not allocate. Times are
// CLOCK_MONOTONIC nanoseconds.
//
//   different values   an update lies between the start of the first read and the end of the second
//   equal values       of a counter: no update between the end of the first and the start of the last
//
// It maintains an interval that contains the next update and one that contains the period, and intersects them with the
// constraints of each pair of reads. Between reads the interval grows by the uncertainty of the period. An empty
// intersection means an irregular update: a slip. The phase is then determined again; after several slips the period,
// too.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace joulemap {

// Bounds of the time of an update.
struct UpdateInterval {
  std::int64_t earliest_ns = 0;
  std::int64_t latest_ns = 0;

  std::int64_t width_ns() const { return latest_ns - earliest_ns; }
  std::int64_t half_width_ns() const { return width_ns() / 2; }
  std::int64_t midpoint_ns() const { return earliest_ns + width_ns() / 2; }
};

struct UpdatePeriod {
  double period_ns = 0;
  double tolerance_ns = 0;
};

// A read may return the value of any moment of its duration.
inline constexpr std::int64_t kUnboundedLatchDelay_ns = INT64_MAX / 2;
// NVML's energy counter on an H200 (driver 580) returns the value at the start of the call, however long it takes. Of
// 2,700 back-to-back calls, idle and loaded, those that began before an update returned the old value, those after it
// the new one.
inline constexpr std::int64_t kNvmlLatchDelay_ns = kNanosecondsPerMillisecond;

class UpdateTimeEstimator {
 public:
  enum class EqualValueMeaning : std::uint8_t {
    no_update,     // a monotonic counter
    inconclusive,  // a gauge: an update may repeat the value
  };

  // `latched_within_ns`: a read returns the value of a moment within this time after its start. If that is wrong,
  // updates slip, and after three slips the clock assumes any moment of the whole read instead.
  explicit UpdateTimeEstimator(EqualValueMeaning equal_values, std::int64_t latched_within_ns = kUnboundedLatchDelay_ns)
      : equal_value_meaning_(equal_values),
        max_latch_delay_ns_(latched_within_ns),
        max_jitter_ns_(equal_values == EqualValueMeaning::no_update ? kCounterJitter_ns : kGaugeJitter_ns) {}

  void observe(std::int64_t before_ns, std::int64_t read_end_ns, std::uint64_t raw_value) noexcept;

  // Suggests a period from another source. Adopted when none is known; narrows the known one when the two agree.
  void suggest_period(double period_ns, double tolerance_ns) noexcept;

  bool has_period() const { return period_.has_value(); }
  // Whether period and phase are known well enough to distinguish neighbouring updates.
  bool is_locked() const;

  // Require has_period().
  double period_ns() const { return period_->midpoint(); }
  double period_uncertainty_ns() const { return period_->width() / 2; }

  // Period to suggest to the clock of another value that the same firmware updates. None until it is known well, and
  // after any slip.
  std::optional<UpdatePeriod> shareable_period() const;

  // The following functions require is_locked(). Half width of the interval of the last update that reads located.
  std::int64_t known_update_half_width_ns() const;
  // The first update that may happen after time_ns, and the update before it, which has certainly happened by time_ns.
  UpdateInterval next_update_after(std::int64_t time_ns) const;
  UpdateInterval last_update_before(std::int64_t time_ns) const;

  std::uint64_t irregular_update_count() const { return irregular_update_count_; }

 private:
  // Measured on an H200: power updates are up to 0.4 ms early or late; the jitter of the energy counter is too small to
  // measure.
  static constexpr double kCounterJitter_ns = 1e5;
  static constexpr double kGaugeJitter_ns = 5e5;

  struct NsInterval {
    double low = 0;
    double high = 0;
    double width() const { return high - low; }
    double midpoint() const { return low + (high - low) / 2; }
    bool empty() const { return low > high; }
  };
  struct RawReading {
    std::int64_t before_ns = 0;
    std::uint64_t raw = 0;
  };

  NsInterval update_interval_after(double updates) const;  // interval of the known update, shifted by that many periods
  double count_periods_until(double time) const;           // number of periods from the known update, rounded
  void observe_change(NsInterval moments) noexcept;
  void observe_unchanged(NsInterval moments) noexcept;
  void search_period(NsInterval moments) noexcept;
  void set_anchor(NsInterval update) noexcept;
  void narrow_known_update(double updates, NsInterval update) noexcept;
  void narrow_period() noexcept;
  void handle_update_slip() noexcept;
  UpdateInterval interval_of_update_index(double updates) const;
  double first_update_index_after(std::int64_t time_ns) const;

  EqualValueMeaning equal_value_meaning_;
  std::int64_t max_latch_delay_ns_;
  double max_jitter_ns_;  // maximum deviation of an update from its regular time

  std::optional<RawReading> last_read_;
  std::int64_t last_read_end_ns_ = 0;
  std::int64_t unchanged_since_ns_ = 0;             // end of the first read that returned the current value
  std::optional<NsInterval> last_change_interval_;  // interval of the last change, while searching for the period
  std::optional<NsInterval> narrowest_change_interval_;
  std::optional<NsInterval> candidate_period_;  // for the period, until a second interval confirms it
  std::optional<NsInterval> period_;
  std::optional<NsInterval> period_at_last_change_;  // period_ at the last change of the value

  // Times are relative to origin_ns_, where doubles are exact enough.
  std::int64_t origin_ns_ = 0;
  std::optional<NsInterval> known_update_interval_;  // interval of one known update, without jitter
  NsInterval
      anchor_update_interval_;  // interval of an earlier update, update_count_from_anchor_ before it: gives the period
  double update_count_from_anchor_ = 0;

  std::uint64_t irregular_update_count_ = 0;
  int recent_slip_count_ = 0;
};

}  // namespace joulemap

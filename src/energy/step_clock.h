// SPDX-License-Identifier: Apache-2.0
//
// StepClock: finds out when a value is renewed that is renewed at a regular period, from nothing but reads of it, each of
// which takes its time. A pure class: fed with reads in order of time, asked for the moments of steps; no clock of its own,
// no allocation. Times are CLOCK_MONOTONIC nanoseconds.
//
//   different values   a step lies between the beginning of the first read and the end of the second
//   equal values       of a counter: no step between the end of the first and the beginning of the last
//
// It keeps an interval that the next step surely lies in and one that the period surely lies in, and intersects them with
// what each pair of reads proves. Between reads the interval widens by what is not known of the period. When nothing is left
// of it the value was not renewed as usual: a slip. The phase is then found again; after several slips the period, too.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace joulemap {

// A step lies somewhere between these two.
struct StepInterval {
  std::int64_t earliest_ns = 0;
  std::int64_t latest_ns = 0;

  std::int64_t width_ns() const { return latest_ns - earliest_ns; }
  std::int64_t half_width_ns() const { return width_ns() / 2; }
  std::int64_t middle_ns() const { return earliest_ns + width_ns() / 2; }
};

struct StepPeriod {
  double period_ns = 0;
  double tolerance_ns = 0;
};

// A read may give the value of any moment of it.
inline constexpr std::int64_t kWholeRead = INT64_MAX / 2;
// NVML's energy counter on an H200 (driver 580): however long a call takes, its value is that of its beginning. Of 2,700
// calls back to back, idle and loaded, those that began before a step gave the old value, those after it the new one.
inline constexpr std::int64_t kNvmlLatch_ns = kNanosecondsPerMillisecond;

class StepClock {
 public:
  enum class EqualValues : std::uint8_t {
    mean_no_step,   // a counter that always rises
    prove_nothing,  // a gauge: it may be renewed with the same value
  };

  // `latched_within_ns`: a read gives the value of some moment so soon after its beginning. Where that turns out wrong, the
  // steps slip, and the whole read is taken instead.
  explicit StepClock(EqualValues equal_values, std::int64_t latched_within_ns = kWholeRead)
      : equal_values_(equal_values),
        latched_within_ns_(latched_within_ns),
        jitter_ns_(equal_values == EqualValues::mean_no_step ? kCounterJitter_ns : kGaugeJitter_ns) {}

  void observe(std::int64_t before_ns, std::int64_t read_end_ns, std::uint64_t raw) noexcept;

  // A period known from elsewhere: taken where none is known yet, and to know ours better where the two agree.
  void suggest_period(double period_ns, double tolerance_ns) noexcept;

  bool knows_period() const { return period_.has_value(); }
  // Both are known, and well enough that steps cannot be mistaken for their neighbours.
  bool is_locked() const;

  // Where knows_period().
  double period_ns() const { return period_->middle(); }
  double period_uncertainty_ns() const { return period_->width() / 2; }

  // What another value that the same firmware updates can be given as its period; nothing while it is not known well.
  std::optional<StepPeriod> shared_period() const;

  // Where is_locked(). As of the last step that something was learned of.
  std::int64_t half_width_ns() const;
  // The first step that is not surely over at time_ns, and the last one that surely is: neighbours.
  StepInterval next_step_after(std::int64_t time_ns) const;
  StepInterval last_step_before(std::int64_t time_ns) const;

  std::uint64_t slips() const { return slips_; }

 private:
  // Seen on an H200: its powers change up to 0.4 ms early or late, its counter less than could be seen.
  static constexpr double kCounterJitter_ns = 1e5;
  static constexpr double kGaugeJitter_ns = 5e5;

  struct Range {
    double low = 0;
    double high = 0;
    double width() const { return high - low; }
    double middle() const { return low + (high - low) / 2; }
    bool empty() const { return low > high; }
  };
  struct Read {
    std::int64_t before_ns = 0;
    std::uint64_t raw = 0;
  };

  Range after_steps(double steps) const;  // the known step, that many periods on
  double steps_to(double time) const;     // from the known step, rounded
  void on_change(Range moments) noexcept;
  void on_rest(Range moments) noexcept;
  void find_period(Range moments) noexcept;
  void place(Range step) noexcept;
  void narrow(double steps, Range step) noexcept;
  void narrow_period() noexcept;
  void slip() noexcept;
  StepInterval step_at(double steps) const;
  double first_step_after(std::int64_t time_ns) const;

  EqualValues equal_values_;
  std::int64_t latched_within_ns_;
  double jitter_ns_;  // how far a single step may lie from the regular moment

  std::optional<Read> last_read_;
  std::int64_t last_end_ns_ = 0;
  std::int64_t resting_since_ns_ = 0;  // end of the first of the reads that gave the present value
  std::optional<Range> last_change_;   // while the period is sought
  std::optional<Range> sharpest_change_;
  std::optional<Range> candidate_;  // for the period: one that waits for a second witness
  std::optional<Range> period_;
  std::optional<Range> trusted_period_;  // as of the last change

  // Moments are kept relative to origin_ns_, where doubles are exact enough.
  std::int64_t origin_ns_ = 0;
  std::optional<Range> step_;  // one step, without jitter
  Range anchor_;               // an earlier one, and how many steps lie between: what the period follows from
  double steps_from_anchor_ = 0;

  std::uint64_t slips_ = 0;
  int recent_slips_ = 0;
};

}  // namespace joulemap

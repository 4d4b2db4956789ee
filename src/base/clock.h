// SPDX-License-Identifier: Apache-2.0
//
// The two clocks that timestamp all data, in integer nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace joulemap {

inline constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
inline constexpr std::int64_t kNanosecondsPerMillisecond = 1'000'000;
inline constexpr std::int64_t kNanosecondsPerMicrosecond = 1'000;

inline std::int64_t clock_ns(clockid_t clock) noexcept {
  timespec current_time{};
  clock_gettime(clock, &current_time);
  return static_cast<std::int64_t>(current_time.tv_sec) * kNanosecondsPerSecond + current_time.tv_nsec;
}

// Monotonic; timestamps of samples and events.
inline std::int64_t monotonic_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }

// Since 1970; timestamps of reports and of other tools' logs.
inline std::int64_t unix_ns() noexcept { return clock_ns(CLOCK_REALTIME); }

// CPU time of all threads of this process: the cost of the tool itself.
inline std::int64_t process_cpu_ns() noexcept { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

inline timespec to_timespec(std::int64_t duration_ns) noexcept {
  return {static_cast<time_t>(duration_ns / kNanosecondsPerSecond),
          static_cast<long>(duration_ns % kNanosecondsPerSecond)};
}

inline double seconds(std::int64_t duration_ns) noexcept {
  return static_cast<double>(duration_ns) / static_cast<double>(kNanosecondsPerSecond);
}

// Sleeps until CLOCK_MONOTONIC reaches deadline_ns. A signal may end the sleep early.
inline void sleep_until(std::int64_t deadline_ns) noexcept {
  const timespec deadline = to_timespec(deadline_ns);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr);
}

}  // namespace joulemap

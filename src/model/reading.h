// SPDX-License-Identifier: Apache-2.0
//
// Reading: the raw result of one read of one channel. Wraps, scale and rates are computed later
// (energy/energy_accumulator.h), so that an error there can be corrected without measuring again. Times are
// CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <cstdint>
#include <string_view>

namespace joulemap {

enum class ReadCode : std::uint8_t {
  ok,
  torn,      // the text changed during the read
  garbage,   // the text is not a number
  vanished,  // the file or device is gone
  denied,    // permission was revoked
  failed,    // any other operating-system error
  skipped,   // the channel was not due: nothing was read, and nothing is recorded
};
inline constexpr std::size_t kReadCodeCount = 7;

struct Reading {
  std::uint64_t raw = 0;       // meaningful only when code is ok
  std::int64_t before_ns = 0;  // just before the read
  std::int64_t after_ns = 0;   // just after it
  ReadCode code = ReadCode::failed;

  std::int64_t time_ns() const { return before_ns + (after_ns - before_ns) / 2; }
};

// Recordings store read times in units of 2^kReadTimeUnitLog2 ns to stay small: 512 ns, or 0.5 mJ at 1 kW.
inline constexpr unsigned kReadTimeUnitLog2 = 9;

// Rounds the times as a recording does, so that live samples and samples read back are identical.
constexpr Reading round_read_times(Reading reading) {
  constexpr std::int64_t kUnit_ns = std::int64_t{1} << kReadTimeUnitLog2;
  reading.before_ns &= ~(kUnit_ns - 1);
  reading.after_ns = (reading.after_ns + kUnit_ns - 1) & ~(kUnit_ns - 1);
  return reading;
}

constexpr std::string_view to_string(ReadCode code) {
  switch (code) {
    case ReadCode::ok:
      return "ok";
    case ReadCode::torn:
      return "torn";
    case ReadCode::garbage:
      return "garbage";
    case ReadCode::vanished:
      return "vanished";
    case ReadCode::denied:
      return "denied";
    case ReadCode::failed:
      return "failed";
    case ReadCode::skipped:
      return "skipped";
  }
  return "unknown";
}

}  // namespace joulemap

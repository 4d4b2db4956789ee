// SPDX-License-Identifier: Apache-2.0
//
// Reading: the raw result of one read of one channel. Unwrapping, scaling and rates happen later
// (energy_accumulator.h), so that a wrong correction can be redone. Times are CLOCK_MONOTONIC nanoseconds.
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
  skipped,   // not due: nothing was read and nothing is recorded
};
inline constexpr std::size_t kReadCodeCount = 7;

struct Reading {
  std::uint64_t raw = 0;  // meaningful only when code is ok
  std::int64_t before_ns = 0;
  std::int64_t after_ns = 0;
  ReadCode code = ReadCode::failed;

  std::int64_t time_ns() const { return before_ns + (after_ns - before_ns) / 2; }
};

// Recordings store read times in units of 2^kReadTimeUnitLog2 ns (512 ns: 0.5 mJ at 1 kW) to stay small.
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

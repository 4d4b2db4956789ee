// SPDX-License-Identifier: Apache-2.0
//
// Reading: what one read of one channel gave, as raw as the hardware gave it. Unwrapping, scaling and rates happen
// later (energy_accumulator.h), so that a wrong correction can be redone. Times are CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <cstdint>
#include <string_view>

namespace joulemap {

enum class ReadCode : std::uint8_t {
  ok,
  torn,      // the text changed under the reader's eyes
  garbage,   // the text is no number
  vanished,  // the file or device is gone
  denied,    // permission was taken away
  failed,    // any other error of the operating system
  skipped,   // it was not due: nothing was read, nothing is to be recorded
};
inline constexpr std::size_t kReadCodes = 7;

struct Reading {
  std::uint64_t raw = 0;  // meaningful only when code is ok
  std::int64_t before_ns = 0;
  std::int64_t after_ns = 0;
  ReadCode code = ReadCode::failed;

  std::int64_t time_ns() const { return before_ns + (after_ns - before_ns) / 2; }
};

// Times of readings are kept in units of 2^kReadTimeShift ns (512 ns: 0.5 mJ at 1 kW), so that a recording stays small.
inline constexpr unsigned kReadTimeShift = 9;

// The same reading with the times that a recording keeps: what is measured live and what is read back are the same samples.
constexpr Reading as_recorded(Reading reading) {
  constexpr std::int64_t kUnit_ns = std::int64_t{1} << kReadTimeShift;
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

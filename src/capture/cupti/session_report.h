// SPDX-License-Identifier: Apache-2.0
//
// What a CUPTI session says about what it missed: the words and codes of its diagnostics. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "capture/cupti/cupti_abi.h"
#include "capture/cupti/record_intake.h"
#include "model/diagnostics.h"

namespace joulemap::capture::cupti {

// Stretches of time whose kernels nobody told us about.
struct Losses {
  std::uint64_t stretches = 0;
  std::int64_t time_ns = 0;
  void add(std::int64_t since_ns, std::int64_t now_ns) {
    ++stretches;
    time_ns += now_ns - since_ns;
  }
};

// Adds what there is to say; nothing when all is well.
void report_losses(const Losses& to_silence, const Losses& to_profiler, Diagnostics& into);
void report_counts(const RecordIntake::Counts& counts, Diagnostics& into);

// CUPTI does not record kernels here, in its own words.
Error kernels_refused(const std::string& why, Outcome outcome);

}  // namespace joulemap::capture::cupti

// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics of a CUPTI session about lost records: their codes and texts. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "capture/cupti/cupti_abi.h"
#include "capture/cupti/record_intake.h"
#include "model/diagnostics.h"

namespace joulemap::capture::cupti {

// Count and total duration of the intervals without kernel records.
struct RecordLosses {
  std::uint64_t interval_count = 0;
  std::int64_t total_ns = 0;
  void add(std::int64_t since_ns, std::int64_t now_ns) {
    ++interval_count;
    total_ns += now_ns - since_ns;
  }
};

// Add a diagnostic for each kind of loss that occurred; none when nothing was lost.
void report_record_losses(const RecordLosses& unexplained_losses, const RecordLosses& profiler_losses,
                          Diagnostics& diagnostics);
void report_record_counts(const RecordIntake::RecordCounts& counts, Diagnostics& diagnostics);

// The error for a CUPTI that refuses to record kernels, with CUPTI's own text.
Error make_kernels_refused_error(const std::string& reason, CuptiResult outcome);

}  // namespace joulemap::capture::cupti

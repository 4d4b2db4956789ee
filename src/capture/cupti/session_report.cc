// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/session_report.h"

#include <cstdio>

#include "base/clock.h"

namespace joulemap::capture::cupti {
namespace {

std::string seconds_text(std::int64_t duration_ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds(duration_ns));
  return text;
}

void report_nonzero_count(Diagnostics& diagnostics, const char* code, std::uint64_t count, const std::string& message,
                          const char* remedy) {
  if (count > 0) diagnostics.add({code, count, message, remedy});
}

}  // namespace

void report_record_losses(const RecordLosses& unexplained_losses, const RecordLosses& profiler_losses,
                          Diagnostics& diagnostics) {
  report_nonzero_count(diagnostics, "kernels_lost", unexplained_losses.interval_count,
                       "another profiler in this process took the kernel records: the kernels of " +
                           seconds_text(unexplained_losses.total_ns) + " are missing",
                       "run without the other profiler");
  report_nonzero_count(
      diagnostics, "kernels_lost", profiler_losses.interval_count,
      "torch.profiler used CUPTI: the kernels of " + seconds_text(profiler_losses.total_ns) + " are missing",
      "run without torch.profiler");
}

void report_record_counts(const RecordIntake::RecordCounts& counts, Diagnostics& diagnostics) {
  report_nonzero_count(diagnostics, "kernels_dropped", counts.dropped_records,
                       "kernel records were dropped: the buffers were full", "");
  report_nonzero_count(diagnostics, "kernels_unreadable", counts.broken_buffers,
                       "CUPTI could not read a record buffer to its end: kernels are missing",
                       "try another CUPTI: JOULEMAP_CUPTI=/path/to/libcupti.so.12");
  report_nonzero_count(diagnostics, "kernels_incomplete", counts.incomplete_records,
                       "kernels that had not ended when CUPTI returned its records are missing", "");
  report_nonzero_count(
      diagnostics, "kernels_foreign_clock", counts.foreign_clock_records,
      "kernel records with times of another clock were skipped (another profiler changed CUPTI's clock)",
      "run without the other profiler");
  report_nonzero_count(diagnostics, "kernels_foreign_buffer", counts.foreign_buffers,
                       "buffers of another profiler were returned to joulemap and ignored", "");
  report_nonzero_count(diagnostics, "records_unknown", counts.unknown_kinds,
                       "records of an unsupported kind were skipped", "");
}

Error make_kernels_refused_error(const std::string& reason, CuptiResult outcome) {
  if (outcome == CuptiResult::insufficient_privileges) {
    return {
        ErrorCode::permission, "kernels are not recorded: " + reason,
        "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/nvidia-profiling.conf "
        "and reboot"};
  }
  return {ErrorCode::unsupported, "kernels are not recorded: " + reason, ""};
}

}  // namespace joulemap::capture::cupti

// SPDX-License-Identifier: Apache-2.0
#include "model/data_loss.h"

#include <algorithm>
#include <array>

namespace joulemap {
namespace {

// Codes of diagnostics that mean data loss, as listed in docs/reference/diagnostics.md.
constexpr std::array<std::string_view, 38> kDataLossCodes = {
    // Damaged or incomplete recordings.
    "cut_off", "not_joined", "recording_cut", "recording_damaged", "recording_not_ended", "recording_part_open",
    "recording_part_skipped", "recording_part_unreadable", "recording_source_lost", "recording_write_failed",
    "samples_of_unknown_channel", "samples_out_of_order", "write_failed",
    // Data that were not recorded.
    "cupti_flush", "cupti_hangs", "engine_steps_dropped", "events_dropped", "kernels_dropped", "kernels_lost",
    "kernels_unreadable", "marks_dropped", "no_recorder", "samples_dropped", "trace_not_read", "unknown_marks",
    // Failures of sensors.
    "counter_frozen", "counter_reset", "energy_missing", "garbage_reading", "readings_missing", "sensor_failed",
    "sensor_hangs", "sensor_vanished", "wrap_missed",
    // Damage of other input files.
    "damaged_file", "damaged_trace", "file_cut", "file_damaged"};

}  // namespace

bool is_data_loss(std::string_view code) {
  return std::find(kDataLossCodes.begin(), kDataLossCodes.end(), code) != kDataLossCodes.end();
}

bool has_data_loss(const Diagnostics& diagnostics) {
  return std::any_of(diagnostics.list().begin(), diagnostics.list().end(),
                     [](const Diagnostic& diagnostic) { return is_data_loss(diagnostic.code); });
}

}  // namespace joulemap

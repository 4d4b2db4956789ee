// SPDX-License-Identifier: Apache-2.0
#include "report/text/record_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/text/diagnostics_text.h"
#include "report/text/energy_rows.h"

namespace joulemap::report {
namespace {

std::string file_size_text(std::uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  if (bytes < 10'000'000) return fmt::format("{} kB", bytes / 1000);
  return fmt::format("{} MB", bytes / 1'000'000);
}

std::string recorded_total_text(const RecordResult& result) {
  const EnergyTotals& totals = result.energy.totals;
  const std::optional<double> measured_j = joules_of(totals.measured);
  const std::optional<double> estimated_j = joules_of(totals.estimated);
  if (measured_j && estimated_j) {
    return fmt::format("{} J measured, {} J estimated", format_number(*measured_j), format_number(*estimated_j));
  }
  if (measured_j) return fmt::format("{} J measured", format_number(*measured_j));
  if (estimated_j) return fmt::format("{} J estimated", format_number(*estimated_j));
  return "no energy: no sensor returned a value";
}

std::string sample_counts_text(const RecordResult& result) {
  if (!result.is_written) {
    return fmt::format("joulemap: {} samples were read, but none could be written: {} contains no data of this run\n",
                       result.samples, result.file);
  }
  const std::string lost_samples_text =
      result.lost_samples > 0 ? fmt::format(", {} more could not be written", result.lost_samples) : "";
  const std::uint64_t written_sample_count = result.samples - std::min(result.samples, result.lost_samples);
  const std::string size = result.file_bytes > 0 ? file_size_text(result.file_bytes) : "in parts";
  return fmt::format("joulemap: {} samples in {} ({}{}); to see the energy, run: joulemap report {}\n",
                     written_sample_count, result.file, size, lost_samples_text, result.file);
}

}  // namespace

std::string record_text(const RecordResult& result) {
  std::string out = fmt::format("\njoulemap: {} s, {}\n", format_number(result.elapsed_s), recorded_total_text(result));
  return out + sample_counts_text(result);
}

std::string record_diagnostics_text(const RecordResult& result) {
  Diagnostics all_diagnostics = result.diagnostics;
  all_diagnostics.add_all(result.energy.diagnostics);
  return diagnostics_text(all_diagnostics);
}

}  // namespace joulemap::report

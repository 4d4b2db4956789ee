// SPDX-License-Identifier: Apache-2.0
#include "recording/damage_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace joulemap::recording {
namespace {
constexpr std::uint64_t kMaxReportedRanges = 8;

// Times of damaged data may be invalid: computes in double, so that differences cannot overflow.
double seconds_between(std::int64_t from_ns, std::int64_t to_ns) {
  return (static_cast<double>(to_ns) - static_cast<double>(from_ns)) / static_cast<double>(kNanosecondsPerSecond);
}
}  // namespace

void DamageLog::begin_file(std::string_view name) {
  file_name_ = name;
  pending_damage_.reset();
  last_sample_.reset();
}

void DamageLog::add(const DamagedRange& damage) {
  if (pending_damage_) report_pending_damage("");
  pending_damage_ = damage;
  ++range_count_;
  damaged_bytes_ += damage.bytes;
}

void DamageLog::add_samples(std::uint32_t source, std::int64_t started_ns, std::span<const Sample> samples) {
  if (samples.empty()) return;
  const auto [earliest_sample, latest_sample] =
      std::minmax_element(samples.begin(), samples.end(),
                          [](const Sample& a, const Sample& b) { return a.reading.before_ns < b.reading.before_ns; });
  if (pending_damage_) {
    const double first_s = seconds_between(started_ns, earliest_sample->reading.before_ns);
    if (last_sample_ && last_sample_->source_index == source) {
      const double last_s = seconds_between(started_ns, last_sample_->last_sample_ns);
      report_pending_damage(
          fmt::format("; samples are missing from {:.3f} s to {:.3f} s after the start", last_s, first_s));
    } else {
      report_pending_damage(fmt::format("; samples before {:.3f} s after the start may be missing", first_s));
    }
  }
  last_sample_ = LastSample{source, latest_sample->reading.before_ns};
}

void DamageLog::end_file() {
  if (!pending_damage_) return;
  report_pending_damage(pending_damage_->is_at_end ? "; writing was cut off there, and later data is missing" : "");
}

void DamageLog::report_pending_damage(const std::string& missing_time) {
  if (reported_diagnostics_.list().size() >= kMaxReportedRanges) {
    ++unreported_ranges_;
    unreported_bytes_ += pending_damage_->bytes;
  } else {
    const std::string code = pending_damage_->is_at_end ? "recording_cut" : "recording_damaged";
    const std::string byte_range_prefix = pending_damage_->is_at_end ? "the last " : "";
    reported_diagnostics_.add({code,
                               1,
                               fmt::format("{}: {}{} bytes (from byte {}) are damaged{}", file_name_, byte_range_prefix,
                                           pending_damage_->bytes, pending_damage_->offset, missing_time),
                               {}});
  }
  pending_damage_.reset();
}

Diagnostics DamageLog::diagnostics() const {
  Diagnostics all_diagnostics = reported_diagnostics_;
  if (unreported_ranges_ > 0) {
    all_diagnostics.add({"recording_damaged",
                         unreported_ranges_,
                         fmt::format("{} more damaged ranges with {} bytes", unreported_ranges_, unreported_bytes_),
                         {}});
  }
  return all_diagnostics;
}

}  // namespace joulemap::recording

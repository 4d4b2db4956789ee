// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/record_loss_detector.h"

namespace joulemap::capture::cupti {

void RecordLossDetector::reset(const Snapshot& snapshot) {
  snapshot_at_last_record_ = snapshot;
  no_records_since_ns_.reset();
}

std::optional<std::int64_t> RecordLossDetector::find_loss_begin_ns(const Snapshot& snapshot) {
  const bool launched = snapshot.launch_count != snapshot_at_last_record_.launch_count;
  if (snapshot.record_count != snapshot_at_last_record_.record_count || !(launched || snapshot.is_clock_replaced)) {
    reset(snapshot);
    return std::nullopt;
  }
  // These launches are first seen now, but may have followed the last record immediately.
  if (!no_records_since_ns_) no_records_since_ns_ = snapshot_at_last_record_.now_ns;
  if (snapshot.now_ns - *no_records_since_ns_ < kLossTimeout_ns) return std::nullopt;
  const bool exceeds_lent_capacity =
      snapshot.launch_count - snapshot_at_last_record_.launch_count > snapshot.lent_record_capacity;
  if (!exceeds_lent_capacity && !snapshot.is_clock_replaced) return std::nullopt;
  return no_records_since_ns_;
}

}  // namespace joulemap::capture::cupti

// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/record_loss_detector.h"

namespace joulemap::capture::cupti {

void RecordLossDetector::restart(const Snapshot& snapshot) {
  at_last_record_ = snapshot;
  no_records_since_ns_.reset();
}

std::optional<std::int64_t> RecordLossDetector::lost_since(const Snapshot& snapshot) {
  const bool launched = snapshot.launches != at_last_record_.launches;
  if (snapshot.records != at_last_record_.records || !(launched || snapshot.clock_is_replaced)) {
    restart(snapshot);
    return std::nullopt;
  }
  // These launches are first seen now, but may have followed the last record immediately.
  if (!no_records_since_ns_) no_records_since_ns_ = at_last_record_.now_ns;
  if (snapshot.now_ns - *no_records_since_ns_ < kLossTimeoutNs) return std::nullopt;
  const bool overflowed = snapshot.launches - at_last_record_.launches > snapshot.lent_capacity;
  if (!overflowed && !snapshot.clock_is_replaced) return std::nullopt;
  return no_records_since_ns_;
}

}  // namespace joulemap::capture::cupti

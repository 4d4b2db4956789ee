// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/loss_watch.h"

namespace joulemap::capture::cupti {

void LossWatch::restart(const Seen& seen) {
  last_record_ = seen;
  silent_since_ns_.reset();
}

std::optional<std::int64_t> LossWatch::lost_since(const Seen& seen) {
  const bool launched = seen.launches != last_record_.launches;
  if (seen.records != last_record_.records || !(launched || seen.clock_is_taken)) {
    restart(seen);
    return std::nullopt;
  }
  // These launches are first seen now, but may have followed the last record immediately.
  if (!silent_since_ns_) silent_since_ns_ = last_record_.now_ns;
  if (seen.now_ns - *silent_since_ns_ < kSilenceNs) return std::nullopt;
  const bool overflowed = seen.launches - last_record_.launches > seen.room;
  if (!overflowed && !seen.clock_is_taken) return std::nullopt;
  return silent_since_ns_;
}

}  // namespace joulemap::capture::cupti

// SPDX-License-Identifier: Apache-2.0
#include "capture/burst_schedule.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace joulemap::capture {
namespace {

constexpr std::int64_t kInitialBurst_ns = 20 * kNanosecondsPerSecond;
constexpr std::int64_t kBurstDuration_ns = 2 * kNanosecondsPerSecond;

double max_total_burst_ns(std::int64_t run_ns) {
  const double first_ns = static_cast<double>(kInitialBurst_ns);
  return first_ns * (1 + std::log(std::max(static_cast<double>(run_ns) / first_ns, 1.0)));
}

}  // namespace

bool BurstSchedule::begin_or_continue_burst(std::int64_t run_ns) {
  if (run_ns < burst_end_ns_) return true;
  if (static_cast<double>(total_burst_ns_ + kBurstDuration_ns) > max_total_burst_ns(run_ns)) return false;
  total_burst_ns_ += kBurstDuration_ns;
  burst_end_ns_ = run_ns + kBurstDuration_ns;
  return true;
}

}  // namespace joulemap::capture

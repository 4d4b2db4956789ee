// SPDX-License-Identifier: Apache-2.0
#include "sensors/read_schedule.h"

#include <algorithm>

#include "base/clock.h"
#include "sensors/sensor.h"

namespace joulemap::sensors {
namespace {

constexpr std::int64_t kCounterReadPeriod_ns = 50 * kNanosecondsPerMillisecond;
constexpr std::int64_t kGaugeReadPeriod_ns = 20 * kNanosecondsPerMillisecond;
constexpr std::int64_t kEstimateReadPeriod_ns = kNanosecondsPerSecond;
constexpr std::int64_t kMaxReadPeriod_ns = 60 * kNanosecondsPerSecond;
constexpr std::int64_t kMinReadPeriod_ns = kNanosecondsPerMillisecond;
constexpr std::int64_t kNearEdgeReadPeriod_ns = 100 * kNanosecondsPerMicrosecond;
constexpr double kReadsPerUpdatePeriod = 10;
// Far above the sustained power of any domain: at this power a counter must not wrap within two read periods.
constexpr double kMaxSustainedPower_w = 1000;

}  // namespace

std::int64_t max_wrap_safe_read_period_ns(std::span<const Channel> channels) {
  double period_ns = static_cast<double>(kMaxReadPeriod_ns);
  for (const Channel& channel : channels) {
    if (!channel.wrap_range) continue;
    const double range_j = static_cast<double>(*channel.wrap_range) * channel.scale;
    period_ns = std::min(period_ns, range_j / (2 * kMaxSustainedPower_w) * static_cast<double>(kNanosecondsPerSecond));
  }
  return std::max(static_cast<std::int64_t>(period_ns), kMinReadPeriod_ns);
}

std::int64_t relaxed_read_period_ns(std::span<const Channel> channels) {
  std::int64_t period_ns = kEstimateReadPeriod_ns;
  for (const Channel& channel : channels) {
    if (channel.provenance == Provenance::estimated) continue;
    period_ns = std::min(period_ns, channel.kind == ChannelKind::gauge ? kGaugeReadPeriod_ns : kCounterReadPeriod_ns);
  }
  return std::min(period_ns, max_wrap_safe_read_period_ns(channels));
}

std::int64_t near_edge_read_period_ns(std::span<const Channel> channels) {
  std::int64_t period_ns = kEstimateReadPeriod_ns;
  for (const Channel& channel : channels) {
    if (channel.provenance == Provenance::estimated) continue;
    const double part_ns = channel.refresh_s / kReadsPerUpdatePeriod * static_cast<double>(kNanosecondsPerSecond);
    period_ns =
        std::min(period_ns, std::clamp(static_cast<std::int64_t>(part_ns), kNearEdgeReadPeriod_ns, kMinReadPeriod_ns));
  }
  return period_ns;
}

std::int64_t Sensor::next_read_ns(std::int64_t last_ns, SamplingMode mode) const noexcept {
  const bool is_between_edges = mode == SamplingMode::relaxed || mode == SamplingMode::every_update;
  if (!is_between_edges) return last_ns + near_edge_read_period_ns(channels());
  if (!requested_read_period_ns_ || mode == SamplingMode::every_update)
    return last_ns + relaxed_read_period_ns(channels());
  return last_ns +
         std::clamp(*requested_read_period_ns_, kNearEdgeReadPeriod_ns, max_wrap_safe_read_period_ns(channels()));
}

}  // namespace joulemap::sensors

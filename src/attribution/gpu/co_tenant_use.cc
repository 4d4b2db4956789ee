// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/co_tenant_use.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace joulemap::attribution {
namespace {

constexpr double kPercent = 0.01;
constexpr double kNotKnown = -1;
// A last reading is valid only for this long: the recorder may have been killed.
constexpr std::int64_t kHoldsFor_ns = 5 * kNanosecondsPerSecond;

}  // namespace

bool is_co_tenant_utilization(const Channel& channel) {
  return channel.quantity == Quantity::utilization && channel.name.ends_with(kOthersUtilization);
}

void CoTenantUse::add(const Reading& reading) {
  const bool ok = reading.code == ReadCode::ok;
  const double share = ok ? std::min(kPercent * static_cast<double>(reading.raw), 1.0) : kNotKnown;
  points_.push_back({reading.time_ns(), share});
  any_ = any_ || share > 0;
  if (!ok) ++failed_;
}

std::vector<BusyStretch> CoTenantUse::inside(TimeSpan span) const {
  std::vector<BusyStretch> stretches;
  const auto add = [&](std::int64_t from_ns, std::int64_t to_ns, double share) {
    const std::int64_t begin_ns = std::max(from_ns, span.begin_ns);
    const std::int64_t end_ns = std::min(to_ns, span.end_ns);
    if (share > 0 && end_ns > begin_ns) stretches.push_back({begin_ns, end_ns, share * seconds(end_ns - begin_ns)});
  };
  std::int64_t last_ns = span.begin_ns;
  for (const Point& point : points_) {
    add(last_ns, point.time_ns, point.share);
    last_ns = std::max(last_ns, point.time_ns);
  }
  if (!points_.empty()) add(last_ns, std::min(span.end_ns, last_ns + kHoldsFor_ns), points_.back().share);
  return stretches;
}

void CoTenantUse::describe(const std::string& domain, Diagnostics& diagnostics) const {
  if (failed_ == 0) return;
  diagnostics.add(
      {"gpu_shared_untold", failed_,
       fmt::format("{}: {} readings could not separate the use of other processes: their energy, if any, is in "
                   "idle, unattributed or the command's rows",
                   domain, failed_),
       "for the energy of one program, let it have the GPU alone; in a container, give it the host's process "
       "numbers (docker run --pid=host)"});
}

TimeCurve curve_of(const std::vector<BusyStretch>& stretches, TimeSpan span) {
  TimeCurve curve(span, cells_for(span));
  for (const BusyStretch& stretch : stretches) curve.add(stretch.begin_ns, stretch.end_ns, stretch.busy_s);
  curve.finish();
  return curve;
}

}  // namespace joulemap::attribution

// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/co_tenant_use.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace joulemap::attribution {
namespace {

constexpr double kFractionPerPercent = 0.01;
constexpr double kUnknownBusyFraction = -1;
// How long the last reading is extrapolated. Not to the end of the span: the recorder may have been killed.
constexpr std::int64_t kMaxReadingAge_ns = 5 * kNanosecondsPerSecond;

}  // namespace

bool is_co_tenant_utilization(const Channel& channel) {
  return channel.quantity == Quantity::utilization && channel.name.ends_with(kCoTenantUtilizationSuffix);
}

void CoTenantUse::add(const Reading& reading) {
  const bool ok = reading.code == ReadCode::ok;
  const double share =
      ok ? std::min(kFractionPerPercent * static_cast<double>(reading.raw), 1.0) : kUnknownBusyFraction;
  busy_fractions_.push_back({reading.time_ns(), share});
  has_co_tenants_ = has_co_tenants_ || share > 0;
  if (!ok) ++failed_reading_count_;
}

std::vector<BusySlice> CoTenantUse::busy_slices(TimeSpan span) const {
  std::vector<BusySlice> slices;
  const auto add = [&](std::int64_t from_ns, std::int64_t to_ns, double share) {
    const std::int64_t begin_ns = std::max(from_ns, span.begin_ns);
    const std::int64_t end_ns = std::min(to_ns, span.end_ns);
    if (share > 0 && end_ns > begin_ns) slices.push_back({begin_ns, end_ns, share * seconds(end_ns - begin_ns)});
  };
  std::int64_t last_ns = span.begin_ns;
  for (const BusyFractionPoint& point : busy_fractions_) {
    add(last_ns, point.time_ns, point.busy_fraction);
    last_ns = std::max(last_ns, point.time_ns);
  }
  if (!busy_fractions_.empty())
    add(last_ns, std::min(span.end_ns, last_ns + kMaxReadingAge_ns), busy_fractions_.back().busy_fraction);
  return slices;
}

void CoTenantUse::add_co_tenant_diagnostic(const std::string& domain, Diagnostics& diagnostics) const {
  if (failed_reading_count_ == 0) return;
  diagnostics.add({"gpu_shared_untold", failed_reading_count_,
                   fmt::format("{}: {} readings could not separate the energy of other processes: it is in idle, "
                               "unattributed or the command's rows, if there is any",
                               domain, failed_reading_count_),
                   "to measure one program, give it the GPU exclusively; in a container, share the host's PID "
                   "namespace (docker run --pid=host)"});
}

TimeCurve make_busy_curve(const std::vector<BusySlice>& slices, TimeSpan span) {
  TimeCurve curve(span, cell_count_for_span(span));
  for (const BusySlice& slice : slices) curve.add(slice.begin_ns, slice.end_ns, slice.busy_s);
  curve.finish();
  return curve;
}

}  // namespace joulemap::attribution

// SPDX-License-Identifier: Apache-2.0
//
// CoTenantUse: how long co-tenants (processes outside of the command) kept a GPU busy, from a utilization gauge that
// the recorder reads about every two seconds (sensors/nvml/other_processes.h). A reading gives the busy fraction since
// the previous reading. When within that time the GPU was busy is unknown: busy time is spread evenly. Pure; ns of
// CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attribution/ledger/time_curve.h"
#include "model/channel.h"
#include "model/diagnostics.h"
#include "model/reading.h"

namespace joulemap::attribution {

struct BusySlice {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  double busy_s = 0;
};

bool is_co_tenant_utilization(const Channel& channel);

class CoTenantUse {
 public:
  // Readings must be added in order of time.
  void add(const Reading& reading);
  bool has_co_tenants() const { return has_co_tenants_; }
  // Busy time of co-tenants within `span`. Extrapolates the last reading by at most 5 s. Unknown and idle times have no
  // slices.
  std::vector<BusySlice> busy_slices(TimeSpan span) const;
  // Reports readings at which co-tenants were present but their use could not be measured.
  void add_co_tenant_diagnostic(const std::string& domain, Diagnostics& diagnostics) const;

 private:
  struct BusyFractionPoint {
    std::int64_t time_ns;
    double busy_fraction;  // busy fraction since the previous point; below 0: unknown
  };
  std::vector<BusyFractionPoint> busy_fractions_;
  bool has_co_tenants_ = false;
  std::uint64_t failed_reading_count_ = 0;
};

TimeCurve make_busy_curve(const std::vector<BusySlice>& slices, TimeSpan span);

}  // namespace joulemap::attribution

// SPDX-License-Identifier: Apache-2.0
#include "attribution/step_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace joulemap::attribution {

LedgerResult rows_of(std::string_view name, std::vector<NumberedMoment> moments,
                     const std::optional<TimeCurve>& energy_j, TimeSpan span) {
  std::sort(moments.begin(), moments.end(),
            [](const NumberedMoment& a, const NumberedMoment& b) { return a.time_ns < b.time_ns; });
  LedgerResult result;
  double attributed_j = 0;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const std::int64_t begin_ns = std::max(moments[i].time_ns, span.begin_ns);
    const std::int64_t end_ns = i + 1 < moments.size() ? moments[i + 1].time_ns : span.end_ns;
    ReportRow row;
    row.path = {fmt::format("{} {}", name, moments[i].number)};
    row.name = fmt::format("{}", moments[i].number);
    row.display_name = row.path.front();
    row.count = 1;
    row.time_s = std::max(seconds(end_ns - begin_ns), 0.0);
    row.basis = "measured";
    if (energy_j) {
      row.energy_j = energy_j->between(begin_ns, end_ns);
      attributed_j += *row.energy_j;
      if (row.time_s > 0) row.power_w = *row.energy_j / row.time_s;
    }
    result.rows.push_back(std::move(row));
  }
  if (!energy_j) return result;
  result.attributed_j = attributed_j;
  result.idle_j = 0;
  result.unattributed_j = energy_j->total() - attributed_j;
  for (ReportRow& row : result.rows) {
    if (attributed_j > 0) row.share = *row.energy_j / attributed_j;
  }
  return result;
}

}  // namespace joulemap::attribution

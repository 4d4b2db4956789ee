// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/run_events.h"

#include <algorithm>

#include "model/activity.h"

namespace joulemap::attribution {
namespace {

constexpr std::size_t kMaxValues = std::size_t{1} << 18;
// A page shows some thousand regions; of a program with more than this, only the first are kept.
constexpr std::size_t kMaxRegionSpans = 200'000;

}  // namespace

void MetricValues::add(const MetricValue& value) {
  if (count++ % stride == 0) values.push_back(value);
  sum += value.value;
  if (values.size() < kMaxValues) return;
  for (std::size_t i = 1; 2 * i < values.size(); ++i) values[i] = values[2 * i];
  values.resize((values.size() + 1) / 2);
  stride *= 2;
}

void RunEvents::add(std::uint32_t source, const Metric& metric) {
  metrics_[{source, metric.name}].add({metric.time_ns, metric.step, metric.value});
}

void RunEvents::add(std::uint32_t source, const Mark& mark) {
  if (mark.name == kProbeRegionName || mark.name == kDitherRegionName) return;
  if (mark.kind == MarkKind::region_begin) open_regions_[{source, mark.id}] = {mark.name, {mark.time_ns, mark.time_ns}};
  if (mark.kind != MarkKind::region_end) return;
  const auto begun = open_regions_.find({source, mark.id});
  if (begun == open_regions_.end()) return;
  NamedSpan region = std::move(begun->second);
  open_regions_.erase(begun);
  region.span.end_ns = std::max(mark.time_ns, region.span.begin_ns);
  std::vector<NamedSpan>& source_regions = regions_[source];
  if (source_regions.size() < kMaxRegionSpans) source_regions.push_back(std::move(region));
}

}  // namespace joulemap::attribution

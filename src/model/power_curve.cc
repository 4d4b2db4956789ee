// SPDX-License-Identifier: Apache-2.0
#include "model/power_curve.h"

#include <algorithm>

#include "base/clock.h"

namespace joulemap {

PowerCurve::PowerCurve(std::int64_t begin_ns, std::int64_t end_ns, std::size_t slices)
    : begin_ns_(begin_ns),
      slice_ns_(static_cast<double>(std::max<std::int64_t>(end_ns - begin_ns, 1)) /
                static_cast<double>(std::max<std::size_t>(slices, 1))),
      slices_(std::max<std::size_t>(slices, 1)) {}

void PowerCurve::add(std::int64_t from_ns, std::int64_t to_ns, double joules) {
  if (to_ns <= from_ns) return;
  const double joules_per_ns = joules / static_cast<double>(to_ns - from_ns);
  const double span_ns = slice_ns_ * static_cast<double>(slices_.size());
  const double from = std::clamp(static_cast<double>(from_ns - begin_ns_), 0.0, span_ns);
  const double to = std::clamp(static_cast<double>(to_ns - begin_ns_), 0.0, span_ns);
  const auto last = slices_.size() - 1;
  for (auto i = std::min(static_cast<std::size_t>(from / slice_ns_), last); i <= last; ++i) {
    const double slice_from = slice_ns_ * static_cast<double>(i);
    if (slice_from >= to) break;
    const double inside_ns = std::min(to, slice_from + slice_ns_) - std::max(from, slice_from);
    if (inside_ns <= 0) continue;
    slices_[i].joules += joules_per_ns * inside_ns;
    slices_[i].covered_ns += inside_ns;
  }
}

double PowerCurve::slice_s() const { return slice_ns_ / static_cast<double>(kNanosecondsPerSecond); }

std::vector<std::optional<double>> PowerCurve::watts() const {
  std::vector<std::optional<double>> watts;
  watts.reserve(slices_.size());
  for (const Slice& slice : slices_) {
    const bool known = slice.covered_ns >= 0.5 * slice_ns_;
    watts.push_back(known ? std::optional(slice.joules / slice.covered_ns * static_cast<double>(kNanosecondsPerSecond))
                          : std::nullopt);
  }
  return watts;
}

}  // namespace joulemap

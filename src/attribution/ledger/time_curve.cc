// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/time_curve.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace joulemap::attribution {
namespace {

constexpr std::int64_t kMinCell_ns = 10 * kNanosecondsPerMillisecond;
constexpr std::int64_t kMaxCurveCells = 200'000;

}  // namespace

std::size_t cell_count_for_span(TimeSpan span) {
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>((span.end_ns - span.begin_ns) / kMinCell_ns, 1, kMaxCurveCells));
}

TimeCurve::TimeCurve(TimeSpan span, std::size_t cells)
    : span_(span),
      cell_ns_(std::max(static_cast<double>(span.end_ns - span.begin_ns), 1.0) / static_cast<double>(cells)),
      cells_(cells) {}

double TimeCurve::cell_s() const { return cell_ns_ / static_cast<double>(kNanosecondsPerSecond); }

double TimeCurve::cell_position(std::int64_t time_ns) const {
  const double cells = static_cast<double>(time_ns - span_.begin_ns) / cell_ns_;
  return std::clamp(cells, 0.0, static_cast<double>(cells_.size()));
}

void TimeCurve::add(std::int64_t from_ns, std::int64_t to_ns, double interval_amount) {
  if (to_ns <= from_ns || cells_.empty()) return;
  const double begin_position = cell_position(from_ns);
  const double end_position = cell_position(to_ns);
  const double amount_per_cell = interval_amount * cell_ns_ / static_cast<double>(to_ns - from_ns);
  for (auto cell = static_cast<std::size_t>(begin_position);
       cell < cells_.size() && static_cast<double>(cell) < end_position; ++cell) {
    const double begin = std::max(begin_position, static_cast<double>(cell));
    const double end = std::min(end_position, static_cast<double>(cell + 1));
    cells_[cell] += amount_per_cell * (end - begin);
  }
}

void TimeCurve::scale(double factor) {
  for (double& cell : cells_) cell *= factor;
}

void TimeCurve::finish() {
  cumulative_sums_.assign(1, 0);
  for (const double cell : cells_) cumulative_sums_.push_back(cumulative_sums_.back() + cell);
}

double TimeCurve::cumulative_amount_at(double position) const {
  const auto cell = std::min(static_cast<std::size_t>(position), cells_.size() - 1);
  return cumulative_sums_[cell] + (position - static_cast<double>(cell)) * cells_[cell];
}

double TimeCurve::amount_between(std::int64_t from_ns, std::int64_t to_ns) const {
  if (to_ns <= from_ns || cumulative_sums_.empty()) return 0;
  return cumulative_amount_at(cell_position(to_ns)) - cumulative_amount_at(cell_position(from_ns));
}

double TimeCurve::mean_rate(std::int64_t from_ns, std::int64_t to_ns) const {
  const std::int64_t clipped_begin_ns = std::max(from_ns, span_.begin_ns);
  const std::int64_t clipped_end_ns = std::min(to_ns, span_.end_ns);
  return clipped_end_ns > clipped_begin_ns
             ? amount_between(clipped_begin_ns, clipped_end_ns) / seconds(clipped_end_ns - clipped_begin_ns)
             : 0;
}

}  // namespace joulemap::attribution

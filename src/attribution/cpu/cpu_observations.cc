// SPDX-License-Identifier: Apache-2.0
#include "attribution/cpu/cpu_observations.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace joulemap::attribution {
namespace {

// CPU time that is summed over shorter spans resolves what ran between two counter readings.
constexpr std::int64_t kMaxDenseSampleSpan_ns = 30 * kNanosecondsPerMillisecond;
// Errors at their ends would dominate shorter observations: CPU time is sampled every 10 ms.
constexpr std::int64_t kMinObservationLength_ns = 40 * kNanosecondsPerMillisecond;

// From this busy fraction on, all CPUs count as busy all the time. The machine's CPU time is counted in ticks: where no
// CPU is idle, it varies only by their quantization, and the fit would conclude that busy CPUs use no power.
constexpr double kAllCpusBusyFraction = 0.93;

bool is_before_point(std::int64_t time_ns, const EnergyPoint& point) { return time_ns < point.time_ns; }

// Linear interpolation between two readings. `time_ns` must lie within them.
double joules_at(std::span<const EnergyPoint> points, std::int64_t time_ns) {
  const auto later_point = std::upper_bound(points.begin() + 1, points.end() - 1, time_ns, is_before_point);
  const EnergyPoint& end_point = *later_point;
  const EnergyPoint& begin_point = *(later_point - 1);
  const double length_ns = static_cast<double>(std::max<std::int64_t>(end_point.time_ns - begin_point.time_ns, 1));
  return begin_point.joules +
         (end_point.joules - begin_point.joules) * static_cast<double>(time_ns - begin_point.time_ns) / length_ns;
}

std::vector<std::int64_t> choose_observation_edges(const CpuUse& use,
                                                   std::span<const std::vector<EnergyPoint>> domains) {
  std::int64_t first_ns = INT64_MIN;
  std::int64_t last_ns = INT64_MAX;
  std::span<const EnergyPoint> densest_readings;
  for (const std::vector<EnergyPoint>& points : domains) {
    if (points.size() < 2) return {};
    first_ns = std::max(first_ns, points.front().time_ns);
    last_ns = std::min(last_ns, points.back().time_ns);
    if (points.size() > densest_readings.size()) densest_readings = points;
  }
  std::vector<std::int64_t> edges_ns;
  const auto add = [&](std::int64_t edge_ns) {
    const bool is_far_enough = edges_ns.empty() || edge_ns - edges_ns.back() >= kMinObservationLength_ns;
    if (is_far_enough && edge_ns >= first_ns && edge_ns <= last_ns) edges_ns.push_back(edge_ns);
  };
  for (const TimeSpan& sample_span : use.sample_spans) {
    if (sample_span.end_ns - sample_span.begin_ns > kMaxDenseSampleSpan_ns) {
      add(sample_span.begin_ns);
      add(sample_span.end_ns);
      continue;
    }
    auto point = std::lower_bound(
        densest_readings.begin(), densest_readings.end(), sample_span.begin_ns,
        [](const EnergyPoint& energy_point, std::int64_t time_ns) { return energy_point.time_ns < time_ns; });
    for (; point != densest_readings.end() && point->time_ns < sample_span.end_ns; ++point) add(point->time_ns);
  }
  return edges_ns;
}

}  // namespace

CpuObservations::CpuObservations(const CpuUse& use, const MachineCpuTime& machine,
                                 std::span<const std::vector<EnergyPoint>> domains, double busy_cpu_exponent)
    : unknown_count_(use.column_count + 2) {
  const std::vector<std::int64_t> edges_ns = choose_observation_edges(use, domains);
  if (edges_ns.size() < 2) return;
  for (std::size_t i = 1; i < edges_ns.size(); ++i) {
    double total_j = 0;
    for (const std::vector<EnergyPoint>& points : domains) {
      total_j += joules_at(points, edges_ns[i]) - joules_at(points, edges_ns[i - 1]);
    }
    scaled_energies_.push_back(total_j);
    energy_j_ += total_j;
  }
  fill_matrix(use, machine, edges_ns, busy_cpu_exponent);
}

void CpuObservations::fill_matrix(const CpuUse& use, const MachineCpuTime& machine,
                                  std::span<const std::int64_t> edges_ns, double busy_cpu_exponent) {
  matrix_.assign(size() * unknown_count_, 0.0);
  weighted_cpu_s_.assign(unknown_count_, 0.0);
  struct SliceInRow {
    std::size_t row;
    const CpuUse::Slice* slice;
    double cpu_s;
  };
  std::vector<SliceInRow> parts;
  std::vector<double> captured_s(size());
  for (const CpuUse::Slice& slice : use.slices) {
    auto row =
        static_cast<std::size_t>(std::upper_bound(edges_ns.begin(), edges_ns.end(), slice.begin_ns) - edges_ns.begin());
    if (row > 0) --row;
    const double length_s = seconds(slice.end_ns - slice.begin_ns);
    for (; row < size() && edges_ns[row] < slice.end_ns; ++row) {
      const std::int64_t from_ns = std::max(edges_ns[row], slice.begin_ns);
      const std::int64_t to_ns = std::min(edges_ns[row + 1], slice.end_ns);
      if (to_ns <= from_ns) continue;
      parts.push_back({row, &slice, seconds(to_ns - from_ns) / length_s * slice.cpu_s});
      captured_s[row] += parts.back().cpu_s;
    }
  }
  const std::vector<double> other_cpu_s =
      other_cpu_s_between(edges_ns, captured_s, machine.readings, machine.cpu_count, kAllCpusBusyFraction);
  std::vector<double> lengths_s;
  std::vector<double> cpu_time_limit_factors;  // factor that limits CPU time, which may be reported late, to all CPUs
  for (std::size_t row = 0; row < size(); ++row) {
    lengths_s.push_back(seconds(edges_ns[row + 1] - edges_ns[row]));
    cpu_time_limit_factors.push_back(
        std::min(machine.cpu_count * lengths_s[row] / std::max(captured_s[row], 1e-9), 1.0));
    captured_s[row] *= cpu_time_limit_factors[row];
  }
  for (const SliceInRow& part : parts) {
    const double cpus = part.slice->mean_busy_cpus() + other_cpu_s[part.row] / lengths_s[part.row];
    matrix_[part.row * unknown_count_ + part.slice->column] +=
        part.cpu_s * cpu_time_limit_factors[part.row] *
        cpu_power_factor(std::min(cpus, machine.cpu_count), busy_cpu_exponent);
  }
  for (std::size_t row = 0; row < size(); ++row) {
    const std::span<double> entries = std::span(matrix_).subspan(row * unknown_count_, unknown_count_);
    entries[use.column_count] =
        other_cpu_s[row] * other_cpu_power_factor(other_cpu_s[row], captured_s[row], lengths_s[row], busy_cpu_exponent);
    entries[use.column_count + 1] = lengths_s[row];
    cpu_s_ += other_cpu_s[row] + captured_s[row];
    for (std::size_t k = 0; k < unknown_count_; ++k) weighted_cpu_s_[k] += entries[k];
    time_s_ += lengths_s[row];
    for (double& entry : entries) entry /= std::sqrt(lengths_s[row]);
    scaled_energies_[row] /= std::sqrt(lengths_s[row]);
  }
}

std::vector<double> CpuObservations::residuals(std::span<const double> watts) const {
  std::vector<double> observation_residuals;
  for (std::size_t row = 0; row < size(); ++row) {
    double modelled_energy = 0;
    const std::span<const double> entries = (*this)[row];
    for (std::size_t k = 0; k < unknown_count_; ++k) modelled_energy += entries[k] * watts[k];
    observation_residuals.push_back(scaled_energies_[row] - modelled_energy);
  }
  return observation_residuals;
}

statistics::NormalEquations CpuObservations::normal_equations(std::span<const double> weights) const {
  statistics::NormalEquations sums(unknown_count_);
  for (std::size_t row = 0; row < size(); ++row)
    sums.add_observation((*this)[row], scaled_energies_[row], weights[row]);
  return sums;
}

}  // namespace joulemap::attribution

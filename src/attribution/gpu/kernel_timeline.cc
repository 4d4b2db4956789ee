// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/kernel_timeline.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "attribution/gpu/kernel_slowdown.h"
#include "base/clock.h"

namespace joulemap::attribution {
namespace {

constexpr std::int64_t kMaxKernelPiece_ns = 4 * kNanosecondsPerSecond;  // fits into 32 bits
constexpr std::size_t kMaxConcurrentKernels = 255;                      // more than a GPU runs at once
constexpr std::int64_t kMaxKernelAgeInTimeConstants = 20;               // older kernels have no weight in an average

// Fraction of a kernel's time that counts as busy, by packed slowdown.
std::array<double, 256> busy_fractions_by_slowdown(double slowdown_exponent) {
  std::array<double, 256> busy_fraction{};
  for (std::size_t i = 0; i < busy_fraction.size(); ++i) {
    busy_fraction[i] = std::pow(unpack_slowdown(static_cast<std::uint8_t>(i)), -slowdown_exponent);
  }
  return busy_fraction;
}

}  // namespace

void KernelTimeline::add_kernel(std::int64_t start_ns, std::int64_t end_ns, std::uint16_t class_index,
                                double slowdown) {
  if (end_ns <= start_ns || class_index >= class_count_) return;
  begin_ns_ = std::min(begin_ns_, start_ns);
  end_ns_ = std::max(end_ns_, end_ns);
  for (std::int64_t from_ns = start_ns; from_ns < end_ns; from_ns += kMaxKernelPiece_ns) {
    const std::int64_t length_ns = std::min(end_ns - from_ns, kMaxKernelPiece_ns);
    kernel_pieces_.push_back({from_ns, static_cast<std::uint32_t>(length_ns), class_index, 1, pack_slowdown(slowdown)});
  }
}

void KernelTimeline::add_busy_sum(std::int64_t begin_ns, std::int64_t end_ns, std::uint16_t class_index,
                                  double busy_s) {
  if (end_ns <= begin_ns || busy_s <= 0 || class_index >= class_count_) return;
  begin_ns_ = std::min(begin_ns_, begin_ns);
  end_ns_ = std::max(end_ns_, end_ns);
  longest_busy_sum_ns_ = std::max(longest_busy_sum_ns_, end_ns - begin_ns);
  busy_sums_.push_back({begin_ns, end_ns, busy_s, class_index});
}

void KernelTimeline::finish() {
  const auto is_earlier = [](const KernelPiece& a, const KernelPiece& b) {
    if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
    return a.class_index != b.class_index ? a.class_index < b.class_index : a.length_ns < b.length_ns;
  };
  if (!std::is_sorted(kernel_pieces_.begin(), kernel_pieces_.end(), is_earlier))
    std::sort(kernel_pieces_.begin(), kernel_pieces_.end(), is_earlier);
  split_concurrent_time();
  std::sort(busy_sums_.begin(), busy_sums_.end(), [](const BusySum& a, const BusySum& b) {
    if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
    return a.end_ns != b.end_ns ? a.end_ns < b.end_ns : a.class_index < b.class_index;
  });
}

// Cuts time where a kernel starts or ends while another runs; leaves kernels that run alone unchanged.
void KernelTimeline::split_concurrent_time() {
  struct RunningKernel {
    std::int64_t end_ns;
    std::uint16_t class_index;
    std::uint8_t slowdown;
  };
  std::vector<KernelPiece> split_pieces;
  split_pieces.reserve(kernel_pieces_.size());
  std::vector<RunningKernel> running;
  std::int64_t now_ns = 0;
  const auto split_time_until = [&](std::int64_t until_ns) {
    while (!running.empty() && now_ns < until_ns) {
      std::int64_t next_ns = until_ns;
      for (const RunningKernel& running_kernel : running) next_ns = std::min(next_ns, running_kernel.end_ns);
      const auto concurrent_kernels = static_cast<std::uint8_t>(running.size());
      for (const RunningKernel& running_kernel : running) {
        if (next_ns <= now_ns) break;
        split_pieces.push_back({now_ns, static_cast<std::uint32_t>(next_ns - now_ns), running_kernel.class_index,
                                concurrent_kernels, running_kernel.slowdown});
      }
      now_ns = next_ns;
      std::erase_if(running, [&](const RunningKernel& running_kernel) { return running_kernel.end_ns <= now_ns; });
    }
    now_ns = std::max(now_ns, until_ns);
  };
  for (const KernelPiece& piece : kernel_pieces_) {
    split_time_until(piece.start_ns);
    now_ns = piece.start_ns;
    if (running.size() < kMaxConcurrentKernels) {
      running.push_back({piece.start_ns + piece.length_ns, piece.class_index, piece.slowdown});
    }
  }
  split_time_until(INT64_MAX);
  kernel_pieces_ = std::move(split_pieces);
}

void KernelTimeline::add_busy_time(BusyTimeMatrix& rows, std::span<const std::int64_t> edges_ns, std::size_t row,
                                   std::int64_t from_ns, std::int64_t to_ns, std::size_t column,
                                   double busy_per_s) const {
  for (; row + 1 < edges_ns.size() && edges_ns[row] < to_ns; ++row) {
    const std::int64_t begin_ns = std::max(from_ns, edges_ns[row]);
    const std::int64_t end_ns = std::min(to_ns, edges_ns[row + 1]);
    if (end_ns > begin_ns)
      rows.busy_seconds[row * rows.column_count + column] += seconds(end_ns - begin_ns) * busy_per_s;
  }
}

BusyTimeMatrix KernelTimeline::busy_times(std::span<const std::int64_t> edges_ns, double slowdown_exponent) const {
  BusyTimeMatrix rows{class_count_ + 1, {}};
  if (edges_ns.size() < 2) return rows;
  rows.busy_seconds.resize((edges_ns.size() - 1) * rows.column_count);
  const std::array<double, 256> busy_fraction = busy_fractions_by_slowdown(slowdown_exponent);
  std::size_t row = 0;
  for (const KernelPiece& piece : kernel_pieces_) {
    while (row + 2 < edges_ns.size() && edges_ns[row + 1] <= piece.start_ns) ++row;
    add_busy_time(rows, edges_ns, row, piece.start_ns, piece.start_ns + piece.length_ns, piece.class_index,
                  busy_fraction[piece.slowdown] / piece.concurrent_kernels);
  }
  for (const BusySum& sum : busy_sums_) {
    const auto following_edge = std::upper_bound(edges_ns.begin(), edges_ns.end(), sum.begin_ns);
    const auto first_row = static_cast<std::size_t>(std::max<std::ptrdiff_t>(following_edge - edges_ns.begin() - 1, 0));
    const double busy_per_s = sum.busy_s / seconds(sum.end_ns - sum.begin_ns);
    add_busy_time(rows, edges_ns, first_row, sum.begin_ns, sum.end_ns, sum.class_index, busy_per_s);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::span<double> times = std::span(rows.busy_seconds).subspan(i * rows.column_count, rows.column_count);
    const double length_s = seconds(edges_ns[i + 1] - edges_ns[i]);
    double busy_s = 0;
    for (const double time_s : times) busy_s += time_s;
    // Sums may add up to more than the elapsed time, because they do not show which kernels were concurrent.
    const double scale = busy_s > length_s ? length_s / busy_s : 1;
    for (double& time_s : times) time_s *= scale;
    times.back() = std::max(length_s - busy_s * scale, 0.0);
  }
  return rows;
}

BusyTimeMatrix KernelTimeline::exponential_moving_averages(std::span<const std::int64_t> times_ns,
                                                           std::int64_t time_constant_ns,
                                                           double slowdown_exponent) const {
  BusyTimeMatrix rows{class_count_ + 1, {}};
  rows.busy_seconds.resize(times_ns.size() * rows.column_count);
  const double decay_rate_per_ns = -1.0 / static_cast<double>(time_constant_ns);
  const auto decay_factor = [&](std::int64_t age_ns) {
    return std::exp(decay_rate_per_ns * static_cast<double>(age_ns));
  };
  const std::array<double, 256> busy_fraction = busy_fractions_by_slowdown(slowdown_exponent);
  std::vector<double> averages(class_count_);
  auto next_piece = kernel_pieces_.begin();
  std::int64_t last_ns = INT64_MIN;
  for (std::size_t row = 0; row < times_ns.size(); ++row) {
    const std::int64_t now_ns = times_ns[row];
    const std::int64_t horizon_ns = now_ns - kMaxKernelAgeInTimeConstants * time_constant_ns;
    if (last_ns < horizon_ns) {
      std::fill(averages.begin(), averages.end(), 0.0);
      last_ns = horizon_ns;
      next_piece = std::partition_point(next_piece, kernel_pieces_.end(), [&](const KernelPiece& piece) {
        return piece.start_ns + piece.length_ns <= horizon_ns;
      });
    }
    const double last_decay = decay_factor(now_ns - last_ns);
    for (double& share : averages) share *= last_decay;
    // Pieces that share time have the same begin and end; all others are disjoint and in order.
    for (auto kernel_piece = next_piece; kernel_piece != kernel_pieces_.end() && kernel_piece->start_ns < now_ns;
         ++kernel_piece) {
      const std::int64_t from_ns = std::max(kernel_piece->start_ns, last_ns);
      const std::int64_t to_ns = std::min(kernel_piece->start_ns + kernel_piece->length_ns, now_ns);
      const double busy_share = busy_fraction[kernel_piece->slowdown] / kernel_piece->concurrent_kernels;
      averages[kernel_piece->class_index] +=
          (decay_factor(now_ns - to_ns) - decay_factor(now_ns - from_ns)) * busy_share;
      if (kernel_piece->start_ns + kernel_piece->length_ns <= now_ns) next_piece = kernel_piece + 1;
    }
    double busy = 0;
    for (std::size_t k = 0; k < class_count_; ++k) busy += rows.busy_seconds[row * rows.column_count + k] = averages[k];
    rows.busy_seconds[row * rows.column_count + class_count_] = std::max(1 - busy, 0.0);
    last_ns = now_ns;
  }
  return rows;
}

bool KernelTimeline::has_only_individual_kernels(std::int64_t from_ns, std::int64_t to_ns) const {
  if (from_ns < begin_ns_ || to_ns > end_ns_) return false;
  const auto first_busy_sum = std::partition_point(busy_sums_.begin(), busy_sums_.end(), [&](const BusySum& sum) {
    return sum.begin_ns <= from_ns - longest_busy_sum_ns_;
  });
  for (auto sum = first_busy_sum; sum != busy_sums_.end() && sum->begin_ns < to_ns; ++sum) {
    if (sum->end_ns > from_ns) return false;
  }
  return true;
}

std::vector<std::size_t> KernelTimeline::select_observation_edges(std::span<const std::int64_t> edges_ns) const {
  std::vector<std::size_t> usable_edges;
  std::size_t sum_index = 0;
  std::int64_t last_sum_end_ns = INT64_MIN;  // end of the sum that already has an edge
  for (std::size_t i = 0; i < edges_ns.size(); ++i) {
    while (sum_index < busy_sums_.size() && busy_sums_[sum_index].end_ns <= edges_ns[i]) ++sum_index;
    const bool is_inside_sum = sum_index < busy_sums_.size() && busy_sums_[sum_index].begin_ns < edges_ns[i];
    if (is_inside_sum && edges_ns[i] < last_sum_end_ns) continue;
    last_sum_end_ns = is_inside_sum ? busy_sums_[sum_index].end_ns : INT64_MIN;
    usable_edges.push_back(i);
  }
  return usable_edges;
}

}  // namespace joulemap::attribution

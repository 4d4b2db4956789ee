// SPDX-License-Identifier: Apache-2.0
//
// KernelTimeline: what ran on one GPU, by class: the busy time of each class between any two times. Single kernels are
// exact; sums over a time span represent kernels that were not recorded singly, spread evenly over it. Concurrent
// kernels share the time, so busy time never exceeds elapsed time. 16 bytes a kernel. Pure; ns of CLOCK_MONOTONIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace joulemap::attribution {

// Busy seconds: a row for each interval, a column for each class and a last column for idle time.
struct BusyTimeMatrix {
  std::size_t column_count = 0;
  std::vector<double> busy_seconds;

  std::size_t size() const { return column_count == 0 ? 0 : busy_seconds.size() / column_count; }
  std::span<const double> operator[](std::size_t row) const {
    return std::span(busy_seconds).subspan(row * column_count, column_count);
  }
};

class KernelTimeline {
 public:
  explicit KernelTimeline(std::size_t classes = 0) : class_count_(classes) {}

  std::size_t class_count() const { return class_count_; }
  // `slowdown`: duration relative to full speed (kernel_slowdown.h).
  void add_kernel(std::int64_t start_ns, std::int64_t end_ns, std::uint16_t class_index, double slowdown = 1);
  void add_busy_sum(std::int64_t begin_ns, std::int64_t end_ns, std::uint16_t class_index, double busy_s);
  // Call once, after everything was added: sorts, and divides time among concurrent kernels.
  void finish();

  bool empty() const { return kernel_pieces_.empty() && busy_sums_.empty(); }
  std::int64_t begin_ns() const { return begin_ns_; }
  std::int64_t end_ns() const { return end_ns_; }
  // Row i lies between edge i and edge i + 1; edges must increase. Of a slowed-down kernel's time the fraction
  // slowdown^-exponent counts as busy, and the rest as idle.
  BusyTimeMatrix busy_times(std::span<const std::int64_t> edges_ns, double slowdown_exponent = 0) const;
  // Exponential moving average with this time constant, at increasing times: a row for each time, with the fraction of
  // every class and of idle; each row sums to 1. Uses single kernels only: sums count as idle (see
  // has_only_individual_kernels()).
  BusyTimeMatrix exponential_moving_averages(std::span<const std::int64_t> times_ns, std::int64_t time_constant_ns,
                                             double slowdown_exponent = 0) const;
  // True if all kernels between these times were recorded individually. False outside of the recorded time.
  bool has_only_individual_kernels(std::int64_t from_ns, std::int64_t to_ns) const;
  // Indices of edges that are useful as ends of rows: at most one within a time span that is known only as a sum,
  // because it is unknown when in that span its kernels ran.
  std::vector<std::size_t> select_observation_edges(std::span<const std::int64_t> edges_ns) const;

 private:
  struct KernelPiece {
    std::int64_t start_ns;
    std::uint32_t length_ns;
    std::uint16_t class_index;
    std::uint8_t concurrent_kernels;  // count of kernels running at that time
    std::uint8_t slowdown;            // as pack_slowdown() returns it
  };
  struct BusySum {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    double busy_s;
    std::uint16_t class_index;
  };

  void split_concurrent_time();
  void add_busy_time(BusyTimeMatrix& rows, std::span<const std::int64_t> edges_ns, std::size_t row,
                     std::int64_t from_ns, std::int64_t to_ns, std::size_t column, double busy_per_s) const;

  std::size_t class_count_;
  std::vector<KernelPiece> kernel_pieces_;  // by start
  std::vector<BusySum> busy_sums_;          // by begin
  std::int64_t longest_busy_sum_ns_ = 0;
  std::int64_t begin_ns_ = INT64_MAX;
  std::int64_t end_ns_ = INT64_MIN;
};

}  // namespace joulemap::attribution

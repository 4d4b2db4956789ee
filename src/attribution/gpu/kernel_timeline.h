// SPDX-License-Identifier: Apache-2.0
//
// KernelTimeline: what ran on one GPU, class by class: how long each class was busy between any two moments. Single kernels
// are exact; sums over a stretch of time stand for kernels that were not kept, spread evenly over it. Kernels that run
// together share the moment, so no more than all of the time is ever busy. 16 bytes a kernel. Pure; CLOCK_MONOTONIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace joulemap::attribution {

// Busy seconds, a row for each interval, a column for each class and one more, the last: nothing ran.
struct BusyRows {
  std::size_t columns = 0;
  std::vector<double> seconds;

  std::size_t size() const { return columns == 0 ? 0 : seconds.size() / columns; }
  std::span<const double> operator[](std::size_t row) const {
    return std::span(seconds).subspan(row * columns, columns);
  }
};

class KernelTimeline {
 public:
  explicit KernelTimeline(std::size_t classes = 0) : classes_(classes) {}

  std::size_t classes() const { return classes_; }
  // `slowness`: how much longer it took than at full speed (kernel_pace.h).
  void add_kernel(std::int64_t start_ns, std::int64_t end_ns, std::uint16_t class_index, double slowness = 1);
  void add_sum(std::int64_t begin_ns, std::int64_t end_ns, std::uint16_t class_index, double busy_s);
  // Once nothing will be added any more: sorts, and shares out moments among kernels that ran together.
  void finish();

  bool empty() const { return pieces_.empty() && sums_.empty(); }
  std::int64_t begin_ns() const { return begin_ns_; }
  std::int64_t end_ns() const { return end_ns_; }
  // Between edge i and edge i + 1, which rise. Of a slow kernel's time as much counts as the slowness to the power of
  // minus `pace`, and the rest as if nothing ran.
  BusyRows busy(std::span<const std::int64_t> edges_ns, double pace = 0) const;
  // What a gauge that forgets (exponentially, with this time constant) has in mind at rising moments: a row for each,
  // with the share of every class and of nothing; together 1.
  BusyRows remembered(std::span<const std::int64_t> moments_ns, std::int64_t memory_ns, double pace = 0) const;
  // Whether kernels are known one by one all the time between.
  bool is_detailed(std::int64_t from_ns, std::int64_t to_ns) const;
  // Edges that make sense as ends of rows: of those within a stretch that is known as a sum alone, one.
  std::vector<std::size_t> useful_edges(std::span<const std::int64_t> edges_ns) const;

 private:
  struct Piece {
    std::int64_t start_ns;
    std::uint32_t length_ns;
    std::uint16_t class_index;
    std::uint8_t together;  // how many ran in this time
    std::uint8_t slowness;  // packed
  };
  struct Sum {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    double busy_s;
    std::uint16_t class_index;
  };

  void share_moments();
  void add_busy(BusyRows& rows, std::span<const std::int64_t> edges_ns, std::size_t row, std::int64_t from_ns,
                std::int64_t to_ns, std::size_t column, double busy_per_s) const;

  std::size_t classes_;
  std::vector<Piece> pieces_;  // by start
  std::vector<Sum> sums_;      // by begin
  std::int64_t longest_sum_ns_ = 0;
  std::int64_t begin_ns_ = INT64_MAX;
  std::int64_t end_ns_ = INT64_MIN;
};

}  // namespace joulemap::attribution

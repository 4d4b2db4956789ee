// SPDX-License-Identifier: Apache-2.0
//
// PowerCurve: mean power in equal slices of a span of time, from pieces of energy as they come. Constant memory, however
// long the span. Pure; CLOCK_MONOTONIC nanoseconds in, watts out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace joulemap {

class PowerCurve {
 public:
  PowerCurve(std::int64_t begin_ns, std::int64_t end_ns, std::size_t slices);

  // Energy that was drawn evenly between two moments, as far as anybody knows. Parts outside the span are cut off.
  void add(std::int64_t from_ns, std::int64_t to_ns, double joules);

  double slice_s() const;
  // Nothing for a slice of which less than half was covered: not known is not 0 W.
  std::vector<std::optional<double>> watts() const;

 private:
  struct Slice {
    double joules = 0;
    double covered_ns = 0;
  };
  std::int64_t begin_ns_;
  double slice_ns_;
  std::vector<Slice> slices_;
};

}  // namespace joulemap

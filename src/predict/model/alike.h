// SPDX-License-Identifier: Apache-2.0
//
// Alike: what was measured of operations that differ in nothing but their sizes, and what that tells of the same operation
// at sizes between and beside them. Two convolutions of the same kernel and stride at other batches, images and widths
// mostly run the same code, so that what physics misses of one it misses of the other: residuals are interpolated between
// the nearest ones (kriging, with a correlation that falls with the distance of the sizes' logarithms). Far from everything
// that was measured nothing is told. A value; asking is pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predict/graph/operation.h"

namespace joulemap::predict {

inline constexpr std::size_t kAlikeSizes = 4;

// What is kept of a measurement, as coarse as a text holds it, so that a profile tells the same once it was written.
struct AlikeSample {
  std::array<std::int32_t, kAlikeSizes> sizes = {};  // logarithms, in hundredths: 0 to 4095
  std::int32_t alignment = 0;                        // how well the last dimension is aligned: 0 to 2
  // Logarithms of what was measured by what physics has, in thousandths: -2047 to 2047.
  std::int32_t time = 0;
  std::int32_t power = 0;

  bool operator==(const AlikeSample&) const = default;
};
AlikeSample sample_of(const Operation& operation, double time, double power);

struct Interpolated {
  double time = 0;   // residuals, as logarithms
  double power = 0;  //
  double doubt = 1;  // 1: nothing like it was measured; 0: it was itself
};

struct Alike {
  std::map<std::uint64_t, std::vector<AlikeSample>> groups;  // by a hash of all that is no size

  void add(const Operation& operation, bool cold, const AlikeSample& sample);
  // As if the sample `without` were not there, where one is given: what the others tell of it.
  Interpolated ask(const Operation& operation, bool cold, const AlikeSample* without = nullptr) const;
};

// Groups and samples as a line of text, for a profile. Numbers are of radix 64 (A-Z a-z 0-9 - _), high digits first, of as
// many digits as stands in brackets, and nothing lies between them. A group: its hash (11), how many samples it has (4), the
// samples. A sample: its sizes (2 each), alignment (1), time and power (2 each, 2048 more than they are).
std::string alike_text(const Alike& alike);
Result<Alike> read_alike(std::string_view text);

}  // namespace joulemap::predict

// SPDX-License-Identifier: Apache-2.0
//
// The pace of kernels: how much longer one took than its like do at full speed. A GPU at its power limit, or too hot,
// lowers its clocks within tens of milliseconds and raises them again, far quicker than any gauge of clocks is read; but
// kernels that compute take longer then, each by itself, and draw less. Kernels that wait for memory take as long as before,
// and draw what they did. So a kernel's own length tells in which regime it ran. Pure; nanoseconds.
//
// What a kernel draws above an idle GPU is divided by its slowness to some power, which is the same for all and found from
// the data (power_evidence.h): 0 where nothing was held back, 2 to 3 on an H200 at its limit.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace joulemap::attribution {

// By process and class: how long one takes at full speed. Classes whose kernels do not all do the same are not in it.
using UsualLengths = std::map<std::pair<std::uint32_t, std::uint32_t>, double>;

// Of one class's kernels, or enough of them; nothing (0) where too few are alike, or they are too short to be told apart.
double usual_length_ns(std::vector<std::uint32_t> lengths_ns);

// 1: at full speed, or nobody knows.
double slowness_of(double length_ns, double usual_ns);

// As many steps of slowness as a byte holds, for those who keep one with each kernel.
std::uint8_t packed_slowness(double slowness);
double slowness_of_packed(std::uint8_t packed);

}  // namespace joulemap::attribution

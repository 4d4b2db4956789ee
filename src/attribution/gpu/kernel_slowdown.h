// SPDX-License-Identifier: Apache-2.0
//
// Slowdown of kernels: duration of a kernel relative to kernels of its class at full speed. A GPU at its power or
// thermal limit lowers and raises its clocks within tens of milliseconds, much faster than clock gauges are read.
// Compute-bound kernels then take longer, each individually, and use less power. Memory-bound kernels keep their
// duration and power. So a kernel's own duration shows in which regime it ran. Pure; nanoseconds.
//
// A kernel's power above idle is divided by its slowdown to some exponent, which is the same for all classes and found
// from the data (power_evidence.h): 0 where clocks were not lowered, 2 to 3 on an H200 at its power limit.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace joulemap::attribution {

// Kernel duration at full speed, ns, by process and class; 0 for classes whose kernels do not all do the same work.
using FullSpeedDurations = std::map<std::pair<std::uint32_t, std::uint32_t>, double>;

// Duration at full speed, from the durations of one class's kernels or a sufficient sample of them. Returns 0 where too
// few are similar, or where they are too short to resolve.
double full_speed_duration_ns(std::vector<std::uint32_t> lengths_ns);

// Duration relative to full speed, at least 1. Returns 1 if the full speed is unknown, or if the kernel takes so long
// that lowered clocks cannot be the reason.
double slowdown_factor(double length_ns, double full_speed_ns);

// Quantized to one byte, for storage with each kernel.
std::uint8_t pack_slowdown(double slowdown);
double unpack_slowdown(std::uint8_t packed_slowdown);

}  // namespace joulemap::attribution

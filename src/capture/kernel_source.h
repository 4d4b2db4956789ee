// SPDX-License-Identifier: Apache-2.0
//
// KernelSource: what learns of the GPU's work, once a process has one. Implemented over CUPTI; owned by the Capture. Times
// are CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <cstdint>

#include "model/diagnostics.h"

namespace joulemap::capture {

// The place of what we launch ourselves, to read a loss: nobody's kernels, and not told.
inline constexpr std::uint32_t kOwnPlace = 0xFFFF'FFFF;

class KernelSource {
 public:
  virtual ~KernelSource() = default;
  virtual void listen(bool on) = 0;            // between two steps
  virtual void allow_rest(bool allowed) = 0;   // whether it may close while nobody listens
  virtual void poll(std::int64_t now_ns) = 0;  // about twice a second, by the capture's thread
  // Kernels that were launched before then and have ended have been told.
  virtual std::int64_t told_until_ns(std::int64_t now_ns) const = 0;
  // Another profiler in this process begins or ends.
  virtual void someone_profiles(bool running, std::int64_t now_ns) = 0;
  virtual void finish(Diagnostics& told) = 0;  // everything that is still out comes in
  virtual void abandon() noexcept = 0;         // in the child of a fork
};

}  // namespace joulemap::capture

// SPDX-License-Identifier: Apache-2.0
//
// KernelRecordSource: interface through which the Capture receives GPU activity. Implemented over CUPTI; owned by the
// Capture. Times are CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <cstdint>

#include "model/diagnostics.h"

namespace joulemap::capture {

// Scope of kernels that Joulemap launches itself, to read a loss value. They are left out of the recording.
inline constexpr std::uint32_t kJoulemapScope = 0xFFFF'FFFF;

class KernelRecordSource {
 public:
  virtual ~KernelRecordSource() = default;
  virtual void set_tracing(bool is_tracing_enabled) = 0;        // enables or disables tracing of launches and kernels
  virtual void set_detach_allowed(bool is_detach_allowed) = 0;  // whether the source may close CUPTI in untraced steps
  virtual void poll_records(std::int64_t now_ns) = 0;           // about twice a second, by the capture's thread
  // Time before which all launched kernels were delivered to the KernelLog.
  virtual std::int64_t kernels_delivered_until_ns(std::int64_t now_ns) const = 0;
  // Another profiler in this process starts or has stopped.
  virtual void set_other_profiler_running(bool is_profiler_running, std::int64_t now_ns) = 0;
  virtual void finish(Diagnostics& diagnostics) = 0;  // delivers all outstanding records
  virtual void abandon_in_child() noexcept = 0;       // called in the child of a fork
};

}  // namespace joulemap::capture

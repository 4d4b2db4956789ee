// SPDX-License-Identifier: Apache-2.0
//
// GpuLoad: a CUDA context on one GPU and a kernel that keeps the whole GPU busy for about a requested time. It changes
// no clocks, limits or modes, and allocates no GPU memory beyond the context. Used only by the thread that opened it.
// Nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "calibration/cuda_driver.h"
#include "model/load_phases.h"

namespace joulemap::calibration {

class GpuLoad {
 public:
  // Creates the context, compiles the kernel and measures its speed, which takes some milliseconds of load.
  static Result<GpuLoad> open(const CudaDriver& driver, std::string_view uuid);
  GpuLoad(GpuLoad&& other_load) noexcept;
  GpuLoad(const GpuLoad&) = delete;
  GpuLoad& operator=(const GpuLoad&) = delete;
  ~GpuLoad();  // calls close()

  // start() begins a load of about this length; wait_until_done() blocks until its end and returns its begin and end;
  // run() does both.
  Status start(std::int64_t length_ns);
  Result<LoadSpan> wait_until_done();
  Result<LoadSpan> run(std::int64_t length_ns);
  // Destroys the context; no effect if there is none.
  Status close();

 private:
  GpuLoad(const CudaDriver& driver, CudaContext context) : driver_(&driver), context_(context) {}
  Status load_kernel(CudaDevice device);
  Status measure_loop_rate();
  Status launch_kernel(std::uint32_t loops);

  const CudaDriver* driver_;
  CudaContext context_;
  CudaFunction function_ = nullptr;
  unsigned block_count_ = 1;
  double loops_per_ns_ = 0;
  std::int64_t load_begin_ns_ = 0;
  double running_loop_count_ = 0;
};

}  // namespace joulemap::calibration

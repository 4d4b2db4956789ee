// SPDX-License-Identifier: Apache-2.0
#include "calibration/gpu_load.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/scoped_signal_block.h"
#include "calibration/load_kernel.h"

namespace joulemap::calibration {
namespace {

// Launch size that fills the multiprocessors of any GPU since Maxwell with blocks that all run concurrently.
constexpr unsigned kThreadsPerBlock = 256;
constexpr unsigned kBlocksPerMultiprocessor = 4;
// Longest launch: a display on the same GPU freezes during a launch.
constexpr std::int64_t kMaxLaunchDuration_ns = 50 * kNanosecondsPerMillisecond;
// Launches to measure the kernel's speed: the number of loops grows until one lasts kMinRateMeasurementTime_ns.
constexpr std::uint32_t kInitialLoopCount = 1000;
constexpr std::uint32_t kMaxLoopCount = 1U << 30;
constexpr std::int64_t kMinRateMeasurementTime_ns = 5 * kNanosecondsPerMillisecond;

}  // namespace

Result<GpuLoad> GpuLoad::open(const CudaDriver& driver, std::string_view uuid) {
  const ScopedSignalBlock signal_block;  // a CUDA context starts threads
  const Result<CudaDevice> device = driver.find_device(uuid);
  if (!device) return device.error();
  CudaContext context = nullptr;
  if (Status context_status =
          driver.check_result(driver.api().context_create(&context, kContextSpinFlag, *device), "cuCtxCreate");
      !context_status) {
    return std::move(context_status).error();
  }
  GpuLoad load(driver, context);
  if (Status compiled = load.load_kernel(*device); !compiled) return std::move(compiled).error();
  if (Status rate_status = load.measure_loop_rate(); !rate_status) return std::move(rate_status).error();
  return load;
}

GpuLoad::GpuLoad(GpuLoad&& other_load) noexcept
    : driver_(other_load.driver_),
      context_(std::exchange(other_load.context_, nullptr)),
      function_(other_load.function_),
      block_count_(other_load.block_count_),
      loops_per_ns_(other_load.loops_per_ns_),
      load_begin_ns_(other_load.load_begin_ns_),
      running_loop_count_(other_load.running_loop_count_) {}

// An error is ignored: if the context cannot be destroyed, it ends with the process.
GpuLoad::~GpuLoad() { static_cast<void>(close()); }

Status GpuLoad::close() {
  if (context_ == nullptr) return Done{};
  return driver_->check_result(driver_->api().context_destroy(std::exchange(context_, nullptr)), "cuCtxDestroy");
}

Status GpuLoad::load_kernel(CudaDevice device) {
  const CudaApi& api = driver_->api();
  int multiprocessors = 0;
  if (Status status = driver_->check_result(
          api.device_attribute(&multiprocessors, kMultiprocessorCountAttribute, device), "cuDeviceGetAttribute");
      !status) {
    return status;
  }
  block_count_ = kBlocksPerMultiprocessor * static_cast<unsigned>(std::max(multiprocessors, 1));
  CudaModule module = nullptr;
  if (Status module_status = driver_->check_result(api.module_load(&module, kLoadKernelPtx), "cuModuleLoadData");
      !module_status) {
    return module_status;
  }
  return driver_->check_result(api.module_function(&function_, module, kLoadKernelName), "cuModuleGetFunction");
}

Status GpuLoad::launch_kernel(std::uint32_t loops) {
  std::uint64_t unused_output = 0;  // the kernel would write here if its values left their range, which never happens
  void* parameters[] = {&unused_output, &loops};
  return driver_->check_result(
      driver_->api().launch(function_, block_count_, 1, 1, kThreadsPerBlock, 1, 1, 0, nullptr, parameters, nullptr),
      "cuLaunchKernel");
}

Status GpuLoad::measure_loop_rate() {
  // The first launch of a kernel includes one-time costs.
  if (Status launched = launch_kernel(1); !launched) return launched;
  if (Result<LoadSpan> load_span = wait_until_done(); !load_span) return std::move(load_span).error();
  for (std::uint32_t loops = kInitialLoopCount;; loops *= 4) {
    load_begin_ns_ = monotonic_ns();
    running_loop_count_ = loops;
    if (Status launched = launch_kernel(loops); !launched) return launched;
    Result<LoadSpan> load_span = wait_until_done();
    if (!load_span) return std::move(load_span).error();
    if (load_span->length_ns() >= kMinRateMeasurementTime_ns) return Done{};
    if (loops > kMaxLoopCount / 4) return Error{ErrorCode::unsupported, "the load kernel ends immediately", {}};
  }
}

Status GpuLoad::start(std::int64_t length_ns) {
  const std::int64_t launches = (length_ns + kMaxLaunchDuration_ns - 1) / kMaxLaunchDuration_ns;
  const double loops_per_launch =
      loops_per_ns_ * static_cast<double>(length_ns) / static_cast<double>(std::max<std::int64_t>(launches, 1));
  const auto loops = static_cast<std::uint32_t>(std::clamp(loops_per_launch, 1.0, static_cast<double>(kMaxLoopCount)));
  load_begin_ns_ = monotonic_ns();
  running_loop_count_ = static_cast<double>(loops) * static_cast<double>(launches);
  for (std::int64_t i = 0; i < launches; ++i) {
    if (Status launched = launch_kernel(loops); !launched) return launched;
  }
  return Done{};
}

Result<LoadSpan> GpuLoad::wait_until_done() {
  if (Status synchronize_status = driver_->check_result(driver_->api().context_synchronize(), "cuCtxSynchronize");
      !synchronize_status) {
    return std::move(synchronize_status).error();
  }
  const LoadSpan span{load_begin_ns_, monotonic_ns()};
  // The GPU's clocks change, so the next load uses the speed of this one.
  loops_per_ns_ = running_loop_count_ / static_cast<double>(std::max<std::int64_t>(span.length_ns(), 1));
  return span;
}

Result<LoadSpan> GpuLoad::run(std::int64_t length_ns) {
  if (Status start_status = start(length_ns); !start_status) return std::move(start_status).error();
  return wait_until_done();
}

}  // namespace joulemap::calibration

// SPDX-License-Identifier: Apache-2.0
#include "calibration/square_waves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "calibration/gpu_load.h"
#include "fake_cuda/load_log.h"
#include "support/temporary_directory.h"
#include "support/virtual_clock.h"

namespace joulemap::calibration {
namespace {

using fake_cuda::LoadState;

constexpr const char* kUuid = "GPU-11111111-2222-3333-4444-555555555555";

// A fake driver that executes `statements`, with one GPU.
class FakeCudaDriverTest : public testing::Test {
 protected:
  Result<CudaDriver> driver(const std::string& statements = {}) {
    const std::string script = folder_.path() + "/script";
    std::ofstream(script) << "device " << kUuid << "\nlog " << log_path() << "\n" << statements;
    ::setenv("JOULEMAP_FAKE_CUDA", script.c_str(), 1);
    return CudaDriver::load(JOULEMAP_FAKE_CUDA_LIBRARY);
  }
  std::string log_path() const { return folder_.path() + "/log"; }
  static void skip_waiting(std::int64_t) {}

  // A plan of very short phases.
  SquareWavePlan make_short_wave_plan() const {
    SquareWavePlan plan;
    plan.active_idle_ns = plan.idle_after_load_ns = plan.idle_after_release_ns = kNanosecondsPerMillisecond;
    plan.full_load_ns = 120 * kNanosecondsPerMillisecond;
    plan.total_waves_ns = 100 * kNanosecondsPerMillisecond;
    plan.min_duration_ns = kNanosecondsPerMillisecond;
    plan.max_duration_ns = 10 * kNanosecondsPerMillisecond;
    return plan;
  }

  TemporaryDirectory folder_;
  VirtualClock clock_;
};

TEST_F(FakeCudaDriverTest, LoadsAndIdlesOnSchedule) {
  const Result<CudaDriver> cuda = driver();
  ASSERT_TRUE(cuda);
  const Result<LoadPhases> phases = run_square_waves(*cuda, kUuid, make_short_wave_plan(), sleep_until);
  ASSERT_TRUE(phases) << phases.error().message;
  // 100 ms of waves whose loads and pauses take 1 to 10 ms each.
  EXPECT_GE(phases->load_spans.size(), 5u);
  EXPECT_LE(phases->load_spans.size(), 50u);
  std::int64_t last_ns = phases->square_waves.begin_ns;
  for (const LoadSpan& load : phases->load_spans) {
    EXPECT_GE(load.begin_ns, last_ns);
    EXPECT_GT(load.end_ns, load.begin_ns);
    last_ns = load.end_ns;
  }
  EXPECT_GE(phases->full_load.begin_ns, phases->square_waves.end_ns);
  EXPECT_GE(phases->after_load.begin_ns, phases->full_load.end_ns);
  EXPECT_GE(phases->idle_after_context.begin_ns, phases->after_load.end_ns);
  // Every kernel ran within a reported load, or before the idle phase, to measure the speed.
  const fake_cuda::LoadLog log(log_path());
  const auto is_load_edge = [&](std::int64_t time_ns) {
    if (time_ns < phases->idle_with_context.begin_ns) return true;
    if (phases->full_load.begin_ns <= time_ns && time_ns <= phases->full_load.end_ns) return true;
    return std::any_of(phases->load_spans.begin(), phases->load_spans.end(),
                       [&](const LoadSpan& load) { return load.begin_ns <= time_ns && time_ns <= load.end_ns; });
  };
  std::size_t kernels = 0;
  for (std::size_t i = 0; i < log.size(); ++i) {
    if (log.at(i).load_state != LoadState::kernel) continue;
    ++kernels;
    EXPECT_TRUE(is_load_edge(log.at(i).time_ns) && is_load_edge(log.at(i + 1).time_ns)) << i;
  }
  EXPECT_GT(kernels, phases->load_spans.size());
  EXPECT_EQ(log.at(log.size() - 1).load_state, LoadState::nothing);
}

TEST_F(FakeCudaDriverTest, RepeatsAFullLoadThatEndedUnobserved) {
  const Result<CudaDriver> cuda = driver();
  ASSERT_TRUE(cuda);
  const SquareWavePlan plan = make_short_wave_plan();
  const std::int64_t observed_wait_ns = plan.full_load_ns * 3 / 4;
  int late_count = 0;
  // The host gets no processor until the first two full loads are over.
  const auto idle_until = [&](std::int64_t time_ns) {
    const bool is_in_full_load = time_ns - monotonic_ns() > observed_wait_ns / 2;
    sleep_until(time_ns + (is_in_full_load && late_count++ < 2 ? 2 * plan.full_load_ns : 0));
  };
  const Result<LoadPhases> phases = run_square_waves(*cuda, kUuid, plan, idle_until);
  ASSERT_TRUE(phases) << phases.error().message;
  EXPECT_EQ(late_count, 3);
  const fake_cuda::LoadLog log(log_path());
  std::int64_t last_kernel_end_ns = 0;
  for (std::size_t i = 0; i + 1 < log.size(); ++i) {
    if (log.at(i).load_state == LoadState::kernel) last_kernel_end_ns = log.at(i + 1).time_ns;
  }
  EXPECT_NEAR(static_cast<double>(phases->full_load.end_ns), static_cast<double>(last_kernel_end_ns), 1e6);
}

TEST_F(FakeCudaDriverTest, ReportsTheFailedCallAndReleasesTheContext) {
  for (const char* call :
       {"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetUuid_v2", "cuDeviceGetAttribute", "cuCtxCreate_v2",
        "cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel", "cuCtxSynchronize"}) {
    SCOPED_TRACE(call);
    const Result<CudaDriver> cuda = driver(std::string("fail ") + call + " 218\n");
    ASSERT_TRUE(cuda);
    const Result<LoadPhases> phases = run_square_waves(*cuda, kUuid, make_short_wave_plan(), skip_waiting);
    ASSERT_FALSE(phases);
    const std::string call_name = std::string(call).substr(0, std::string(call).find("_v2"));
    EXPECT_NE(phases.error().message.find(call_name + ": pretended failure (CUDA error 218)"), std::string::npos)
        << phases.error().message;
    const fake_cuda::LoadLog log(log_path());
    const LoadState last_load_state = log.size() > 0 ? log.at(log.size() - 1).load_state : LoadState::nothing;
    EXPECT_EQ(last_load_state, LoadState::nothing);
  }
}

TEST_F(FakeCudaDriverTest, ReportsMissingFunctions) {
  const Result<CudaDriver> driver_without_device = driver("fail cuInit 100\n");
  ASSERT_FALSE(driver_without_device);
  EXPECT_EQ(driver_without_device.error().code, ErrorCode::not_found);
  EXPECT_NE(driver_without_device.error().message.find("no CUDA-capable device"), std::string::npos);

  const Result<CudaDriver> driver_of_missing_file = CudaDriver::load("/nowhere/libcuda.so");
  ASSERT_FALSE(driver_of_missing_file);
  EXPECT_EQ(driver_of_missing_file.error().code, ErrorCode::not_found);

  const Result<CudaDriver> driver_of_other_library = CudaDriver::load("libm.so.6");
  ASSERT_FALSE(driver_of_other_library);
  EXPECT_EQ(driver_of_other_library.error().code, ErrorCode::malformed);

  const Result<CudaDriver> cuda = driver();
  ASSERT_TRUE(cuda);
  const Result<GpuLoad> unknown_gpu = GpuLoad::open(*cuda, "GPU-99999999-2222-3333-4444-555555555555");
  ASSERT_FALSE(unknown_gpu);
  EXPECT_NE(unknown_gpu.error().message.find("none of the 1 CUDA devices is GPU-9999"), std::string::npos);
}

TEST(CudaLibrary, ElevatedProgramsIgnoreARequestedCudaLibrary) {
  EXPECT_EQ(choose_cuda_library("", false, true), "libcuda.so.1");
  EXPECT_EQ(choose_cuda_library("", false, false), "");
  EXPECT_EQ(choose_cuda_library("/my/libcuda.so", false, false), "/my/libcuda.so");
  EXPECT_EQ(choose_cuda_library("/my/libcuda.so", true, true), "libcuda.so.1");
  EXPECT_EQ(choose_cuda_library("/my/libcuda.so", true, false), "");
}

}  // namespace
}  // namespace joulemap::calibration

// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/driver_calls.h"

#include <gtest/gtest.h>

namespace joulemap::capture::cupti {
namespace {

TEST(LaunchCalls, LaunchCallsAreCallsThatSubmitGpuWork) {
  for (const char* name : {"cuLaunch", "cuLaunchGridAsync", "cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchKernelEx",
                           "cuLaunchKernelEx_ptsz", "cuLaunchCooperativeKernel_ptsz",
                           "cuLaunchCooperativeKernelMultiDevice", "cuGraphLaunch", "cuGraphLaunch_ptsz"}) {
    EXPECT_EQ(driver_call_kind(name), DriverCallKind::launch) << name;
  }
  for (const char* name : {"cuMemcpy", "cuMemcpyHtoDAsync_v2_ptsz", "cuMemcpy3DPeerAsync", "cu64Memcpy2DAsync",
                           "cuMemcpyBatchAsync_v2", "cuMemsetD8Async", "cuMemsetD2D32_v2_ptds", "cu64MemsetD8"}) {
    EXPECT_EQ(driver_call_kind(name), DriverCallKind::copy) << name;
  }
}

TEST(LaunchCalls, CallsWithSimilarNamesAreNoLaunchCalls) {
  for (const char* name : {"INVALID", "", "cuInit", "cuLaunchHostFunc", "cuLaunchHostFunc_ptsz", "cuMemSetAccess",
                           "cuGraphInstantiate", "cuGraphAddMemcpyNode", "cuMemAlloc_v2"}) {
    EXPECT_EQ(driver_call_kind(name), DriverCallKind::none) << name;
  }
}

TEST(LaunchCalls, RecognizesCallsThatWaitForTheGpu) {
  for (const char* name : {"cuStreamSynchronize", "cuStreamSynchronize_ptsz", "cuCtxSynchronize", "cuCtxSynchronize_v2",
                           "cuEventSynchronize"}) {
    EXPECT_EQ(driver_call_kind(name), DriverCallKind::synchronization) << name;
  }
}

}  // namespace
}  // namespace joulemap::capture::cupti

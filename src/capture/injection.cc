// SPDX-License-Identifier: Apache-2.0
//
// The two doors through which NVIDIA's software lets us in: the CUDA driver calls the first during cuInit
// (CUDA_INJECTION64_PATH), every copy of NVTX in the process the second when it is first used (NVTX_INJECTION64_PATH).
#include "capture/cuda_capture.h"
#include "capture/nvtx/nvtx_attach.h"
#include "capture/nvtx_ranges.h"

#define JOULEMAP_DOOR extern "C" __attribute__((visibility("default")))

// The driver gives up on programs whose injection fails, so it never does.
JOULEMAP_DOOR int InitializeInjection() {
  joulemap::capture::start_cuda_capture();
  return 1;
}

// 0 makes that copy of NVTX do nothing, as if we were not there.
JOULEMAP_DOOR int InitializeInjectionNvtx2(joulemap::capture::nvtx::GetExportTable tables) {
  using namespace joulemap::capture;
  return nvtx::attach(tables, {&nvtx_push, &nvtx_pop}) ? 1 : 0;
}

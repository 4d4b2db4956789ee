// SPDX-License-Identifier: Apache-2.0
//
// The two entry points that NVIDIA's software calls. The CUDA driver calls the first during cuInit
// (CUDA_INJECTION64_PATH). Every copy of NVTX in the process calls the second on its first use (NVTX_INJECTION64_PATH).
#include "capture/cuda_capture.h"
#include "capture/nvtx/nvtx_attach.h"
#include "capture/nvtx_ranges.h"

#define JOULEMAP_INJECTION_ENTRY extern "C" __attribute__((visibility("default")))

// Always returns success: after an error, the driver would not work for the program.
JOULEMAP_INJECTION_ENTRY int InitializeInjection() {
  joulemap::capture::start_cuda_capture();
  return 1;
}

// Returns 0 when joulemap cannot attach; then that copy of NVTX does nothing, as without an injection.
JOULEMAP_INJECTION_ENTRY int InitializeInjectionNvtx2(joulemap::capture::nvtx::GetExportTable tables) {
  using namespace joulemap::capture;
  return nvtx::attach_nvtx_callbacks(tables, {&nvtx_push, &nvtx_pop}) ? 1 : 0;
}

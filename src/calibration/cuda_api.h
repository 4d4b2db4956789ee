// SPDX-License-Identifier: Apache-2.0
//
// The types and functions of NVIDIA's driver API (libcuda) needed to load a GPU. Declared here, so that we build
// without a CUDA toolkit and start without a driver. Names, layouts and numbers follow the CUDA Driver API reference
// (docs.nvidia.com/cuda/cuda-driver-api), whose ABI is stable; newer functions carry a version in their name.
#pragma once

namespace joulemap::calibration {

// CUresult
enum class CudaResult : int {
  success = 0,
  no_device = 100,
};

using CudaDevice = int;  // CUdevice: an ordinal

struct CudaContextData;
struct CudaModuleData;
struct CudaFunctionData;
using CudaContext = CudaContextData*;    // CUcontext: opaque
using CudaModule = CudaModuleData*;      // CUmodule
using CudaFunction = CudaFunctionData*;  // CUfunction

// CUuuid
struct CudaUuid {
  unsigned char bytes[16];
};

inline constexpr int kMultiprocessorCountAttribute = 16;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
inline constexpr unsigned kContextSpinFlag = 0x1;         // CU_CTX_SCHED_SPIN: synchronization detects the end at once

struct CudaApi {
  CudaResult (*init)(unsigned flags) = nullptr;
  CudaResult (*error_string)(CudaResult result, const char** text) = nullptr;
  CudaResult (*device_count)(int* count) = nullptr;
  CudaResult (*device_get)(CudaDevice* device, int ordinal) = nullptr;
  CudaResult (*device_uuid)(CudaUuid* uuid, CudaDevice device) = nullptr;
  CudaResult (*device_attribute)(int* value, int attribute, CudaDevice device) = nullptr;
  CudaResult (*context_create)(CudaContext* context, unsigned flags, CudaDevice device) = nullptr;
  CudaResult (*context_destroy)(CudaContext context) = nullptr;
  CudaResult (*context_synchronize)() = nullptr;
  CudaResult (*module_load)(CudaModule* module, const void* image) = nullptr;
  CudaResult (*module_function)(CudaFunction* function, CudaModule module, const char* name) = nullptr;
  // Stream 0 is the context's default stream.
  CudaResult (*launch)(CudaFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                       unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** parameters,
                       void** extra_options) = nullptr;
};

}  // namespace joulemap::calibration

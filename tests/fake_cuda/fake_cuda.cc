// SPDX-License-Identifier: Apache-2.0
//
// A fake CUDA driver whose calls only take time. JOULEMAP_CUDA=<this library> makes joulemap use it. It follows the
// file named by JOULEMAP_FAKE_CUDA, one statement a line:
//
//   device GPU-11111111-2222-3333-4444-555555555555   CUDA's next device
//   log PATH                                          file for what the first device does (load_log.h)
//   fail cuCtxCreate_v2 2                             this function fails with this code
//   loops_per_ms 20000                                speed of kernels
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "calibration/cuda_api.h"
#include "fake_cuda/load_log.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace joulemap::calibration {
struct CudaContextData {};
struct CudaModuleData {};
struct CudaFunctionData {};
}  // namespace joulemap::calibration

namespace {

using namespace joulemap;
using namespace joulemap::calibration;
using fake_cuda::LoadState;

// Global state behind a C interface, as in CUDA.
struct State {
  std::vector<std::string> devices;
  std::map<std::string, int> failures;
  std::unique_ptr<fake_cuda::LoadLog> log;
  double loops_per_ms = 20'000;
  CudaContextData context;
  CudaModuleData module;
  CudaFunctionData function;
  bool has_context = false;
  std::int64_t busy_until_ns = 0;
};
State state;

CudaResult find_scripted_result(const char* function) {
  const auto failure = state.failures.find(function);
  return failure == state.failures.end() ? CudaResult::success : static_cast<CudaResult>(failure->second);
}

bool read_script(std::istream& file) {
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string verb;
    std::string name;
    if (!(words >> verb)) continue;
    if (verb == "loops_per_ms") {
      if (!(words >> state.loops_per_ms)) return false;
      continue;
    }
    if (!(words >> name)) return false;
    if (verb == "device") {
      state.devices.push_back(name);
    } else if (verb == "log") {
      state.log = std::make_unique<fake_cuda::LoadLog>(name);
    } else if (verb != "fail" || !(words >> state.failures[name])) {
      return false;
    }
  }
  return true;
}

void log_load_state(std::int64_t time_ns, LoadState load_state) {
  if (state.log != nullptr && state.log->is_open()) state.log->add(time_ns, load_state);
}

}  // namespace

EXPORTED CudaResult cuInit(unsigned) {
  const char* path = std::getenv("JOULEMAP_FAKE_CUDA");
  std::ifstream file(path != nullptr ? path : "");
  state.devices.clear();
  state.failures.clear();
  state.busy_until_ns = 0;
  if (!file.is_open() || !read_script(file)) {
    std::fprintf(stderr, "fake CUDA: cannot read the script %s\n", path != nullptr ? path : "(JOULEMAP_FAKE_CUDA)");
    std::abort();
  }
  return find_scripted_result("cuInit");
}

EXPORTED CudaResult cuGetErrorString(CudaResult result, const char** text) {
  *text = result == CudaResult::no_device ? "no CUDA-capable device is detected" : "pretended failure";
  return CudaResult::success;
}

EXPORTED CudaResult cuDeviceGetCount(int* count) {
  *count = static_cast<int>(state.devices.size());
  return find_scripted_result("cuDeviceGetCount");
}

EXPORTED CudaResult cuDeviceGet(CudaDevice* device, int ordinal) {
  *device = ordinal;
  return find_scripted_result("cuDeviceGet");
}

EXPORTED CudaResult cuDeviceGetUuid_v2(CudaUuid* uuid, CudaDevice device) {
  std::string digits;
  for (const char letter : state.devices[static_cast<std::size_t>(device)].substr(4)) {
    if (letter != '-') digits += letter;
  }
  digits.resize(32, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    uuid->bytes[i] = static_cast<unsigned char>(std::strtoul(digits.substr(2 * i, 2).c_str(), nullptr, 16));
  }
  return find_scripted_result("cuDeviceGetUuid_v2");
}

EXPORTED CudaResult cuDeviceGetAttribute(int* value, int attribute, CudaDevice) {
  *value = attribute == kMultiprocessorCountAttribute ? 132 : 0;
  return find_scripted_result("cuDeviceGetAttribute");
}

EXPORTED CudaResult cuCtxCreate_v2(CudaContext* context, unsigned, CudaDevice) {
  const CudaResult outcome = find_scripted_result("cuCtxCreate_v2");
  if (outcome != CudaResult::success) return outcome;
  *context = &state.context;
  state.has_context = true;
  log_load_state(monotonic_ns(), LoadState::context);
  return outcome;
}

EXPORTED CudaResult cuCtxDestroy_v2(CudaContext) {
  state.has_context = false;
  log_load_state(monotonic_ns(), LoadState::nothing);
  return find_scripted_result("cuCtxDestroy_v2");
}

EXPORTED CudaResult cuModuleLoadData(CudaModule* module, const void*) {
  *module = &state.module;
  return find_scripted_result("cuModuleLoadData");
}

EXPORTED CudaResult cuModuleGetFunction(CudaFunction* function, CudaModule, const char*) {
  *function = &state.function;
  return find_scripted_result("cuModuleGetFunction");
}

EXPORTED CudaResult cuLaunchKernel(CudaFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   void*, void** parameters, void**) {
  const CudaResult outcome = state.has_context ? find_scripted_result("cuLaunchKernel") : static_cast<CudaResult>(201);
  if (outcome != CudaResult::success) return outcome;
  const double length_ms = static_cast<double>(*static_cast<const unsigned*>(parameters[1])) / state.loops_per_ms;
  const std::int64_t start_ns = std::max(monotonic_ns(), state.busy_until_ns);
  state.busy_until_ns = start_ns + static_cast<std::int64_t>(length_ms * 1e6);
  log_load_state(start_ns, LoadState::kernel);
  log_load_state(state.busy_until_ns, LoadState::context);
  return outcome;
}

EXPORTED CudaResult cuCtxSynchronize() {
  while (monotonic_ns() < state.busy_until_ns) sleep_until(state.busy_until_ns);
  return find_scripted_result("cuCtxSynchronize");
}

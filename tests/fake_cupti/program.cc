// SPDX-License-Identifier: Apache-2.0
//
// A program with a fake GPU, for tests of `joulemap record`. It loads CUDA_INJECTION64_PATH as the CUDA driver does,
// and then drives the fake libcupti (JOULEMAP_CUPTI).
//
//   joulemap-fake-cuda-program STEPS KERNELS [fork | quick-exit | thief | no-steps]
//
// Each step takes 20 ms, or longer on a busy machine. Its kernels alternate between "gemm" (in region "first") and
// "relu" (in region "second"). A gemm takes three times as long as a relu, and all kernels together take 10 ms.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/clock.h"
#include "fake_cupti/fake_cupti.h"
#include "joulemap/capture.h"

namespace {

using joulemap::fake_cupti::FakeCupti;

constexpr std::int64_t kStep_ns = 20 * joulemap::kNanosecondsPerMillisecond;
constexpr std::int64_t kMaxLateness_ns = kStep_ns / 20;

struct InjectedLibrary {
  void* handle = ::dlopen(std::getenv("CUDA_INJECTION64_PATH"), RTLD_NOW | RTLD_GLOBAL);
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle, name));
  }
};

void simulate_step(const InjectedLibrary& library, const FakeCupti& fake, int kernels) {
  const auto push = library.find<void(const char*)>("jmc_region_push");
  const auto pop = library.find<int()>("jmc_region_pop");
  const std::int64_t short_kernel_ns = kStep_ns / 2 / (2 * kernels);  // the kernels fill half of the step
  for (int i = 0; i < kernels; ++i) {
    const bool is_first_region = i % 2 == 0;
    push(is_first_region ? "first" : "second");
    fake.launch({.name = is_first_region ? "gemm" : "relu",
                 .duration_ns = is_first_region ? 3 * short_kernel_ns : short_kernel_ns});
    pop();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int steps = std::atoi(argv[1]);
  const int kernels = std::atoi(argv[2]);
  const std::string_view failure_mode = argc > 3 ? argv[3] : "";
  const FakeCupti& fake = joulemap::fake_cupti::load_fake_cupti(std::getenv("JOULEMAP_CUPTI"));
  fake.reset(130001);
  const InjectedLibrary library;
  if (library.handle == nullptr) return std::fprintf(stderr, "%s\n", ::dlerror()), 3;
  if (library.find<int()>("InitializeInjection")() != 1) return 4;
  const auto step = library.find<void(const std::int64_t*)>("jmc_step");
  std::int64_t deadline_ns = joulemap::monotonic_ns();
  for (std::int64_t i = 0; i < steps; ++i) {
    if (failure_mode != "no-steps") step(&i);
    if (failure_mode == "thief" && i == steps / 2) fake.attach_other_profiler(true);
    if (failure_mode == "fork" && i == steps / 2) {
      const pid_t child = ::fork();
      if (child == 0) {
        library.find<void(const char*)>("jmc_region_push")("child");
        std::exit(0);
      }
      int status = 0;
      if (::waitpid(child, &status, 0) != child || status != 0) return 5;
    }
    const std::int64_t begin_ns = joulemap::monotonic_ns();
    simulate_step(library, fake, kernels);
    // Late steps are not caught up: on any machine, kernels fill at most half of the time.
    if (begin_ns > deadline_ns + kMaxLateness_ns) deadline_ns = begin_ns;
    joulemap::sleep_until(deadline_ns += kStep_ns);
  }
  if (failure_mode == "quick-exit") ::_exit(0);
  return 0;
}

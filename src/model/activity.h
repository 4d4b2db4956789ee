// SPDX-License-Identifier: Apache-2.0
//
// What ran when, as captured in one process. Plain data; times are CLOCK_MONOTONIC nanoseconds. Ids are local to the
// process (the source of the recording) that assigned them.
//
// - A Scope is a scope: the position of a thread in the program (phase, module, operation, user region). Scopes form a
//   tree; 0 is the root, outside of every scope. A thread is in one scope at a time, and its time there is exclusive:
//   times of scopes never overlap, so they add up.
// - A Kernel is one piece of GPU work: a kernel, a copy or a memset. It belongs to the scope and the step that launched
//   it.
// - Tallies are exact sums over an interval and are always recorded. Single kernels are recorded until the file reaches
//   its size limit, and after that only for sampled steps; StepRecord::detailed marks these steps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap {

enum class ScopeKind : std::uint8_t {
  mode,      // "train", "inference"
  phase,     // "forward", "backward", "optimizer", "dataloader" ...
  module,    // full dotted path of a layer
  op,        // an operation of the framework
  function,  // a function of the program
  region,    // named by the program: jm.region, record_function, NVTX
  tensors,   // inputs of the enclosing operation, as scopes/tensor_text.h formats them
};
inline constexpr std::size_t kScopeKindCount = 7;
// Mode of code that computes gradients.
inline constexpr std::string_view kTrainMode = "train";
// Mode of the code that runs only to measure the power of modules. It is not part of the run (docs/attribution.md).
inline constexpr std::string_view kProbeMode = "probe";
// Marks of this region delimit the probing interval.
inline constexpr std::string_view kProbeRegion = "joulemap.probe";
// Region in which `record --dither` delays the program.
inline constexpr std::string_view kDitherRegion = "joulemap.dither";

struct Scope {
  std::uint32_t id = 0;
  std::uint32_t parent = 0;
  ScopeKind kind = ScopeKind::region;
  std::string name;
};

struct ScopeTally {
  std::uint32_t scope = 0;
  std::uint64_t count = 0;             // number of times a thread entered the scope
  std::uint64_t sampled = 0;           // entries in steps whose operations were also recorded
  std::int64_t wall_ns = 0;            // exclusive wall time of threads in this scope
  std::int64_t cpu_ns = 0;             // CPU time of those threads
  std::int64_t helper_threads_ns = 0;  // CPU time of threads that worked on their behalf, such as OpenMP threads
};

// How the time in a coarse scope divides among finer ones, measured by the framework's own profiler in some sampled
// steps. Only the proportions are used; time and energy of the coarse scope come from its tallies.
struct ScopeShare {
  std::uint32_t coarse_scope = 0;
  std::uint32_t scope = 0;
  std::uint64_t count = 0;
  std::int64_t time_ns = 0;
};

enum class KernelKind : std::uint8_t {
  kernel,
  copy,
  fill,
  graph,  // a whole CUDA graph whose nodes are not reported one by one
};
inline constexpr std::size_t kKernelKindCount = 4;

// Kernels of the same code launched with the same grid and block size.
struct KernelClass {
  std::uint32_t id = 0;
  KernelKind kind = KernelKind::kernel;
  std::string name;  // mangled, as reported by the device library; the direction of a copy
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
};

// A stream of a device on which kernels queue.
struct KernelQueue {
  std::uint32_t id = 0;
  std::string device;         // UUID, or empty
  std::uint32_t ordinal = 0;  // index of the device in that process
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
};

struct Kernel {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t class_id = 0;
  std::uint32_t queue = 0;
  std::uint32_t scope = 0;
  std::uint32_t correlation = 0;  // of the launch; kernels of a graph share it
  std::uint64_t bytes = 0;        // size of a copy or memset
};

struct KernelTally {
  std::uint32_t class_id = 0;
  std::uint32_t queue = 0;
  std::uint32_t scope = 0;
  std::uint64_t count = 0;
  std::int64_t time_ns = 0;
};

enum class WaitKind : std::uint8_t {
  host,             // the host was busy elsewhere, or launching
  synchronization,  // the host had waited for the GPU, and had nothing launched ahead
};
inline constexpr std::size_t kWaitKinds = 2;

// Time in which a GPU of the process was idle, by the scope that it waited for (scopes/gpu_waiting.h).
struct WaitTally {
  std::uint32_t queue = 0;  // of the kernel that ended the wait: identifies the device
  std::uint32_t scope = 0;
  WaitKind kind = WaitKind::host;
  std::uint64_t count = 0;  // idle gaps; of gaps that several scopes share, collections of them
  std::int64_t time_ns = 0;
};

// A completed training step. Steps of equal shape launched the same kernels from the same scopes in the same order.
struct StepRecord {
  std::int64_t number = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t kernel_sequence_hash = 0;  // 0: unknown, because the kernels were not traced
  std::uint64_t kernels = 0;               // number launched by the step
  std::int64_t gpu_ns = 0;                 // summed duration of its kernels
  bool traced = false;                     // kernels were traced
  bool has_kernel_records = false;         // and are recorded one by one
};

// What ran in one interval.
struct Activity {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::vector<Scope> scopes;  // new in this interval; each appears once
  std::vector<KernelClass> classes;
  std::vector<KernelQueue> queues;
  std::vector<ScopeTally> scope_tallies;
  std::vector<KernelTally> kernel_tallies;
  std::vector<Kernel> kernels;
  std::vector<StepRecord> steps;
  std::vector<ScopeShare> shares;
  std::vector<WaitTally> waits;

  bool empty() const {
    return scopes.empty() && classes.empty() && queues.empty() && scope_tallies.empty() && kernel_tallies.empty() &&
           kernels.empty() && steps.empty() && shares.empty() && waits.empty();
  }
};

}  // namespace joulemap

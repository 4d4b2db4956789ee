// SPDX-License-Identifier: Apache-2.0
//
// What ran when, as captured in one process. Plain data; times are CLOCK_MONOTONIC nanoseconds. Ids are local to the
// process (the source of the recording) that assigned them.
//
// - A Scope is a position in the measured program: phase, module, operation, or user region. Scopes form a tree; id 0
//   is the root, outside of every scope. A thread is in one scope at a time, and its time there is exclusive: the time
//   of a scope excludes that of its children, so times of scopes add up.
// - A Kernel is one piece of GPU work: a kernel, a copy or a memset. It belongs to the scope and the step that launched
//   it.
// - Tallies are exact sums over an interval, of all that was traced. Kernel records of single kernels are written as
//   long as the size budget of the recording allows; StepRecord::has_kernel_records marks the steps that have them.
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
  op,        // an operation of the framework, such as aten::conv2d
  function,  // a function of the measured program or of the framework
  region,    // named by the measured program: jm.region, record_function, NVTX
  tensors,   // inputs of the enclosing operation, as scopes/tensor_text.h formats them
};
inline constexpr std::size_t kScopeKindCount = 7;
// Name of the mode scope of code that computes gradients.
inline constexpr std::string_view kTrainModeScopeName = "train";
// Name of the mode scope in which --probe replays modules to measure their power. It is not part of the run
// (docs/explanation/attribution.md).
inline constexpr std::string_view kProbeModeScopeName = "probe";
// Name of the region whose marks delimit the time of probing.
inline constexpr std::string_view kProbeRegionName = "joulemap.probe";
// Name of the region in which `record --dither` delays the measured program.
inline constexpr std::string_view kDitherRegionName = "joulemap.dither";

struct Scope {
  std::uint32_t id = 0;
  std::uint32_t parent = 0;
  ScopeKind kind = ScopeKind::region;
  std::string name;
};

struct ScopeTally {
  std::uint32_t scope = 0;
  std::uint64_t count = 0;                 // number of times a thread entered the scope
  std::uint64_t sampled_count = 0;         // part of `count` in sampled steps, whose operations are recorded, too
  std::int64_t wall_ns = 0;                // exclusive wall time of threads in this scope
  std::int64_t cpu_ns = 0;                 // CPU time of these threads in this scope
  std::int64_t helper_threads_cpu_ns = 0;  // CPU time of untracked threads meanwhile, such as OpenMP workers
};

// Time of a finer scope within a coarse one, measured by the framework's own profiler in some sampled steps. Only the
// proportions are used; time and energy of the coarse scope come from its tallies.
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
  graph,  // a launch of a whole CUDA graph, whose nodes were not traced one by one
};
inline constexpr std::size_t kKernelKindCount = 4;

// Kernels of the same code launched with the same grid and block size.
struct KernelClass {
  std::uint32_t id = 0;
  KernelKind kind = KernelKind::kernel;
  std::string name;  // of a kernel: mangled, as CUPTI or the trace reports it; of a copy: its direction
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
};

// A CUDA stream: kernels of one queue run in order.
struct KernelQueue {
  std::uint32_t id = 0;
  std::string device;         // UUID of the GPU; empty when unknown
  std::uint32_t ordinal = 0;  // index of the GPU in that process
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
};

struct Kernel {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t class_id = 0;
  std::uint32_t queue = 0;
  std::uint32_t scope = 0;
  std::uint32_t correlation = 0;  // CUPTI correlation id of the launch; kernels of one graph launch share it
  std::uint64_t bytes = 0;        // size of a copy or memset; 0 for a kernel
};

struct KernelTally {
  std::uint32_t class_id = 0;
  std::uint32_t queue = 0;
  std::uint32_t scope = 0;
  std::uint64_t count = 0;
  std::int64_t time_ns = 0;
};

// What an idle GPU waited for.
enum class WaitKind : std::uint8_t {
  host,             // for the host, which ran other code or launched the next kernel
  synchronization,  // for the host, which had synchronized with the GPU and so could not launch ahead
};
inline constexpr std::size_t kWaitKindCount = 2;

// Time in which a GPU was idle because it waited for a scope of this process (scopes/gpu_wait_attribution.h).
struct WaitTally {
  std::uint32_t queue = 0;  // queue of a kernel next to the wait; identifies the GPU
  std::uint32_t scope = 0;
  WaitKind kind = WaitKind::host;
  std::uint64_t count = 0;  // number of charges to this scope: pieces of idle gaps, or sums over many short gaps
  std::int64_t time_ns = 0;
};

// A completed step. Steps of equal kernel_sequence_hash launched the same kernels in the same order and scopes.
struct StepRecord {
  std::int64_t number = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t kernel_sequence_hash = 0;  // 0: unknown, because not all kernels were traced or fit into memory
  std::uint64_t kernels = 0;               // number launched by the step
  std::int64_t summed_kernel_ns = 0;       // summed duration of its kernels
  bool is_traced = false;                  // its kernels were traced
  bool has_kernel_records = false;         // Activity::kernels contains each of its kernels
};

// What ran in one interval in one process.
struct Activity {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::vector<Scope> scopes;  // like `classes` and `queues`: those that are new in this interval
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

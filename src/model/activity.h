// SPDX-License-Identifier: Apache-2.0
//
// What ran when, as the capture of a process saw it. Plain data; times are CLOCK_MONOTONIC nanoseconds. Ids are local to
// the process (the source of the recording) that gave them.
//
// - A Place is where a program is: in a phase, a module, an operation, a region of its own. Places make a tree; 0 is its
//   root, outside of everything. A thread is at one place at a time, and its time there is that place's own: times of
//   places never overlap, so they add up.
// - A Kernel is a piece of work of a GPU: a kernel, a copy, a fill. It belongs to the place and the step that launched it.
// - Tallies are exact sums over a stretch of time and are kept always. Single kernels are kept as long as the file may
//   grow, and for sampled steps ever after; a StepRecord says which.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap {

enum class PlaceKind : std::uint8_t {
  mode,      // "train", "inference"
  phase,     // "forward", "backward", "optimizer", "dataloader" ...
  module,    // the whole dotted path of a layer
  op,        // an operation of the framework
  function,  // a function of the program
  region,    // what the program named itself: jm.region, record_function, NVTX
  tensors,   // within an operation: its inputs, as scopes/tensor_text.h writes them
};
inline constexpr std::size_t kPlaceKinds = 7;
// The mode of what ran only to find out what modules draw: no part of the run (docs/attribution.md).
inline constexpr std::string_view kProbeMode = "probe";
// Marks of this region say from when until when.
inline constexpr std::string_view kProbeRegion = "joulemap.probe";
// The region in which a program is held up by `record --dither`.
inline constexpr std::string_view kDitherRegion = "joulemap.dither";

struct Place {
  std::uint32_t id = 0;
  std::uint32_t parent = 0;
  PlaceKind kind = PlaceKind::region;
  std::string name;
};

struct PlaceTally {
  std::uint32_t place = 0;
  std::uint64_t count = 0;      // how often a thread entered it
  std::uint64_t sampled = 0;    // of these, in steps whose operations were told, too
  std::int64_t wall_ns = 0;     // threads at this place, and not in one within it
  std::int64_t cpu_ns = 0;      // CPU time of those threads
  std::int64_t helpers_ns = 0;  // CPU time of threads that worked for them: OpenMP's, say
};

// How the time at a coarse place divides among finer ones, as a profiler of the framework's own told for some sampled steps.
// Only proportions count; the coarse place's time and energy are told by its tallies.
struct PlaceShare {
  std::uint32_t coarse = 0;
  std::uint32_t place = 0;
  std::uint64_t count = 0;
  std::int64_t time_ns = 0;
};

enum class KernelKind : std::uint8_t {
  kernel,
  copy,
  fill,
  graph,  // a whole graph, where its nodes are not told one by one
};
inline constexpr std::size_t kKernelKinds = 4;

// Work of one kind: the same code on as many threads.
struct KernelClass {
  std::uint32_t id = 0;
  KernelKind kind = KernelKind::kernel;
  std::string name;  // as the device's library gives it, mangled; of a copy its direction
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
};

// Where kernels queue.
struct KernelQueue {
  std::uint32_t id = 0;
  std::string device;         // UUID, or empty
  std::uint32_t ordinal = 0;  // of the device in that process
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
};

struct Kernel {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t class_id = 0;
  std::uint32_t queue = 0;
  std::uint32_t place = 0;
  std::uint32_t correlation = 0;  // of its launch; kernels of a graph share it
  std::uint64_t bytes = 0;        // of a copy or a fill
};

struct KernelTally {
  std::uint32_t class_id = 0;
  std::uint32_t queue = 0;
  std::uint32_t place = 0;
  std::uint64_t count = 0;
  std::int64_t time_ns = 0;
};

// A step that has ended. Steps of equal shape launched the same kernels from the same places in the same order.
struct StepRecord {
  std::int64_t number = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t shape = 0;    // 0: unknown, because kernels were not listened to
  std::uint64_t kernels = 0;  // launched by it
  std::int64_t gpu_ns = 0;    // summed time of its kernels
  bool listened = false;      // kernels were told
  bool detailed = false;      // and are kept one by one
};

// What ran in a stretch of time.
struct Activity {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::vector<Place> places;  // new ones; each once
  std::vector<KernelClass> classes;
  std::vector<KernelQueue> queues;
  std::vector<PlaceTally> place_tallies;
  std::vector<KernelTally> kernel_tallies;
  std::vector<Kernel> kernels;
  std::vector<StepRecord> steps;
  std::vector<PlaceShare> shares;

  bool empty() const {
    return places.empty() && classes.empty() && queues.empty() && place_tallies.empty() && kernel_tallies.empty() &&
           kernels.empty() && steps.empty() && shares.empty();
  }
};

}  // namespace joulemap

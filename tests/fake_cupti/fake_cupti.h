// SPDX-License-Identifier: Apache-2.0
//
// Controls of the fake libcupti: what a test makes the GPU, the program and other profilers do. Code under test only
// uses the library's CUPTI interface. Times are nanoseconds.
//
//   const FakeCupti& fake = load_fake_cupti(JOULEMAP_FAKE_CUPTI_LIBRARY);
//   fake.reset(130001);
//   fake.launch({.name = "gemm", .duration_ns = 5000});
//
// A library has one state, which reset() restores. Callbacks of the tool under test run on the thread that calls the
// control.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>

namespace joulemap::fake_cupti {

enum class Work : std::uint8_t { kernel, copy, fill, peer_copy, graph };

struct Launch {
  Work work = Work::kernel;
  const char* name = "kernel";
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t device = 0;
  std::uint32_t stream = 7;
  std::int64_t duration_ns = 1000;
  std::uint64_t bytes = 0;
  std::uint8_t copy_kind = 1;     // CUPTI_ACTIVITY_MEMCPY_KIND_HTOD
  std::uint64_t graph_node = 0;   // kernel of a graph: no API call of its own
  std::uint32_t correlation = 0;  // that of the graph's launch; 0: a new one
  bool keeps_running = false;     // until end_running_records()
};

struct FakeCupti {
  // Restores the state of a new process. `version` is the result of cuptiGetVersion.
  void (*reset)(std::uint32_t version);

  // Actions of the program. Return correlation ids.
  std::uint32_t (*launch)(const Launch& launch);
  std::uint32_t (*launch_graph)();  // only the call; add its kernels by launch() with graph_node and correlation
  void (*end_running_records)();
  // Return handles of graph nodes; CUPTI returns their ids.
  std::uint64_t (*capture_graph_node)();
  std::uint64_t (*clone_graph_node)(std::uint64_t original_node);

  // Delivery of records.
  void (*set_records_held)(bool is_enabled);  // delays records
  void (*release_records)(bool is_reversed);  // delivers the delayed records
  void (*add_unknown_record)();

  // Other profilers and tools.
  void (*set_other_subscriber)(bool is_present);
  void (*attach_other_profiler)(bool sets_clock);  // registers its own buffers (and clock)
  void (*detach_other_profiler)();                 // disables the kinds it enabled; its callbacks stay
  void (*return_foreign_buffer)();                 // to the tool that is registered now
  void (*finalize)();                              // cuptiFinalize

  // Faults.
  void (*jump_clock)(std::int64_t offset_ns);
  void (*set_function_result)(const char* function, int outcome);  // makes the function return this; 0: works again
  void (*set_flush_hang)(bool is_enabled);
  void (*set_times_damaged)(bool is_enabled);

  // What the tool under test did.
  std::uint64_t (*calls)();  // total number of calls of CUPTI functions
  bool (*is_subscribed)();
  bool (*is_kind_enabled)(std::uint32_t kind);
  bool (*is_callback_enabled)(const char* driver_function);
};

inline const FakeCupti& load_fake_cupti(const char* path) {
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::abort();
  const auto get_fake_cupti = reinterpret_cast<const FakeCupti* (*)()>(::dlsym(library, "fake_cupti"));
  return *get_fake_cupti();
}

}  // namespace joulemap::fake_cupti

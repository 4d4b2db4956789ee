// SPDX-License-Identifier: Apache-2.0
//
// KernelLog: records what the GPU ran and from which scope. Launching threads report the scope and step of each launch.
// Records of finished kernels arrive later, on another thread and out of order; a correlation id ties them to their
// launch. The log assembles steps, hashes their kernel sequence (shape), and keeps individual kernels within a budget
// that limits the size of the file.
//
// on_launch runs on the program's critical path: no lock, no allocation, some nanoseconds. The other functions take a
// lock. The program's threads call on_synchronization, on_graph_node*, and at the start of a step begin_step,
// set_tracing and load; CUPTI's threads and the capture's thread call the rest. Times are CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "capture/kernel_scope_inference.h"
#include "model/activity.h"
#include "model/diagnostics.h"
#include "scopes/gpu_wait_attribution.h"

namespace joulemap::capture {

// One CUPTI record. Its name is borrowed for the duration of the call.
struct KernelActivityRecord {
  KernelKind kind = KernelKind::kernel;
  std::string_view name;
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
  std::uint32_t device_ordinal = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;
  std::uint64_t graph_node = 0;  // 0: not part of a graph
  std::uint64_t bytes = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

class KernelLog {
 public:
  KernelLog();

  // Records a launch of the calling thread. `step` is a serial number that only grows (0: outside of steps).
  void on_launch(std::uint32_t correlation, std::uint32_t scope, std::uint32_t step, std::int64_t time_ns) noexcept;
  // The calling thread, in this scope, begins to wait for the GPU (begins) or has stopped waiting.
  void on_synchronization(std::uint32_t scope, bool begins, std::int64_t time_ns);
  // A node was captured into a CUDA graph in this scope; or a node was copied, for example when its graph was
  // instantiated.
  void on_graph_node(std::uint64_t node, std::uint32_t scope);
  void on_graph_node_copied(std::uint64_t original_node, std::uint64_t copied_node);
  void set_device(std::uint32_t ordinal, std::string uuid);
  void on_kernel(const KernelActivityRecord& kernel_record);

  // Begins a step and ends the previous one. Steps begin in order.
  void begin_step(std::uint32_t step, std::int64_t number, std::int64_t time_ns, bool is_traced);
  // Ends the last step without beginning another.
  void end_step(std::int64_t time_ns);
  // Like end_step, before modules are replayed (probing): their kernels are kept individually, within a budget of about
  // a minute of a busy GPU.
  void end_step_for_probing(std::int64_t time_ns);

  // From time_ns on, kernels are traced, or no longer; the host is then in `scope`. Idle time of the GPU is known only
  // while kernels are traced.
  void set_tracing(std::int64_t time_ns, WaitTracing tracing, std::uint32_t scope);
  // Kernels of this interval were not recorded; until_ns is INT64_MAX as long as the end is unknown.
  void on_records_lost(std::int64_t since_ns, std::int64_t until_ns);
  // Adds entries and exits of scopes by the host's threads, in any order. Call before attribute_gpu_waits.
  void add_host_scope_changes(std::vector<HostScopeChange> edges);
  // Attributes idle time of the GPUs before `settled_until_ns` (as in collect_kernel_activity) to the scopes that they
  // waited for, so that memory stays small. `end_ns`: the current time. collect_gpu_waits moves the result into
  // `wait_activities`.
  void attribute_gpu_waits(std::int64_t settled_until_ns, std::int64_t end_ns);
  void collect_gpu_waits(std::vector<Activity>& wait_activities);

  // Moves all complete data into `activity`: steps that ended before `settled_until_ns`, whose kernels have all arrived,
  // and the tallies of kernels that started before it, with the interval they cover. INT64_MAX, at the end of a
  // recording, moves everything.
  void collect_kernel_activity(Activity& activity, std::int64_t settled_until_ns, bool includes_tallies);
  void collect_names(Activity& activity) const;  // all classes and queues again, at the end of a recording

  struct Counts {
    std::uint64_t launch_count = 0;
    std::uint64_t kernel_count = 0;
    std::uint64_t kernels_without_scope = 0;        // launch not seen, or overwritten since
    std::uint64_t kernels_with_inferred_scope = 0;  // launch not seen; scope taken from an earlier step
  };
  Counts counts() const;
  // Load of the last 15 traced steps; shows whether the program is launch bound. Medians per step, because first steps
  // and steps with a pause are outliers. Zeros before the first traced step.
  struct StepLoadSummary {
    std::uint64_t traced_steps = 0;  // number of traced steps so far
    double kernels_per_step = 0;
    double step_s = 0;
    double gpu_s = 0;  // summed duration of the kernels of a step
  };
  StepLoadSummary recent_step_load() const;

 private:
  struct Launch {
    std::atomic<std::uint64_t> correlation_and_step{0};
    std::atomic<std::uint32_t> scope{0};
    std::atomic<std::int64_t> time_ns{0};
  };
  struct OpenStep {
    StepRecord record;
    std::vector<Kernel> kernels;
    bool has_ended = false;
    bool is_partly_written = false;  // part of it is already written
  };
  struct TallyKey {
    std::uint32_t class_id;
    std::uint32_t queue;
    std::uint32_t scope;
    bool operator==(const TallyKey&) const = default;
  };
  struct TallyHash {
    std::size_t operator()(const TallyKey& key) const {
      const std::uint64_t number = std::uint64_t{key.scope} << 32 | (key.class_id ^ key.queue << 24);
      return (number ^ number >> 29) * 0x9E3779B97F4A7C15u;
    }
  };

  void end_last_step(std::int64_t time_ns);
  std::uint32_t find_or_add_kernel_class(const KernelActivityRecord& kernel_record);
  std::uint32_t find_or_add_queue(const KernelActivityRecord& kernel_record);
  void tally_settled_kernels(std::int64_t settled_until_ns);
  void collect_steps(Activity& activity, std::int64_t settled_until_ns);
  void write_ended_step(OpenStep& step, Activity& activity);
  void write_step_part(OpenStep& step, Activity& activity);
  bool spend_kernel_record_budget(std::size_t kernels);

  std::unique_ptr<Launch[]> launch_ring_;
  std::atomic<std::uint64_t> launch_count_{0};

  mutable std::mutex lock_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> kernel_class_ids_;  // by hash of name, kind, grid and block
  std::vector<KernelClass> kernel_classes_;
  std::vector<KernelQueue> kernel_queues_;
  std::size_t collected_class_count_ = 0;
  std::size_t collected_queue_count_ = 0;
  std::map<std::uint32_t, std::string> device_uuids_;
  std::unordered_map<std::uint64_t, std::uint32_t> scope_by_graph_node_;
  std::map<std::uint32_t, OpenStep> open_steps_;
  std::vector<Kernel> untallied_kernels_;
  std::int64_t tallied_until_ns_ = INT64_MIN;  // the last call of tally_settled_kernels
  std::unordered_map<TallyKey, KernelTally, TallyHash> kernel_tallies_;
  std::int64_t first_tallied_start_ns_ = INT64_MAX;  // start of the first and end of the last tallied kernel
  std::int64_t last_tallied_end_ns_ = INT64_MIN;
  std::unordered_map<std::uint64_t, std::uint64_t> step_counts_by_kernel_sequence_;
  std::uint32_t last_written_step_ = 0;  // steps up to this serial number are written
  bool is_between_steps_ = false;        // after end_step, before the next begin_step
  double kernel_record_budget_;
  std::int64_t budget_refill_time_ns_ = 0;
  KernelScopeInference scope_inference_;
  Counts counts_;
  GpuWaitAttribution gpu_wait_attribution_;
  std::vector<HostScopeChange> pending_scope_changes_;  // of synchronizations and of the start of tracing
  struct StepLoad {
    double kernels;
    double step_s;
    double gpu_s;
  };
  std::array<StepLoad, 15> recent_step_loads_{};  // ring buffer
  std::uint64_t step_load_count_ = 0;
};

// Period between writes of the tallies, in ns. Short early in a run, so that short runs have detail; longer as the run
// goes on, so that the file of a day stays small.
std::int64_t tally_write_period_ns(std::int64_t run_ns);

}  // namespace joulemap::capture

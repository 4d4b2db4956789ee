// SPDX-License-Identifier: Apache-2.0
//
// Capture: collects what this process does and writes it to the recording: the scope of each thread, the training
// steps, and the GPU's work. A recorded process has one instance. The first call creates it; nothing destroys it,
// because threads of the host may still call during exit. The child of a fork creates its own and never touches its
// parent's (base/fork_generation.h). All functions are thread-safe.
//
// include/joulemap/capture.h documents the calls that this class implements.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "capture/burst_schedule.h"
#include "capture/function_samples.h"
#include "capture/helper_account.h"
#include "capture/hlo_scopes.h"
#include "capture/kernel_log.h"
#include "capture/kernel_source.h"
#include "capture/mark_log.h"
#include "capture/scope_table.h"
#include "capture/step_inference.h"
#include "capture/thread_track.h"
#include "capture/tracing_policy.h"

namespace joulemap::capture {

class Capture {
 public:
  explicit Capture(std::unique_ptr<MarkSink> sink, TracingMode closeness = TracingMode::automatic);

  // The instance of this process; nullptr when the process is not recorded. existing() never creates one.
  static Capture* get();
  static Capture* existing();
  // join() reads the environment again and returns whether this process is recorded. leave_recording() ends that.
  static bool join();
  static void leave_recording();
  static void finish_existing();

  std::uint64_t number() const { return number_; }  // unique among the Captures of this process and of its parents
  MarkLog& marks() { return *marks_; }
  KernelLog& kernels() { return kernels_; }

  std::uint32_t scope_in(std::uint32_t parent, ScopeKind kind, std::string_view name) {
    return scopes_.child(parent, kind, name);
  }
  std::uint32_t here();
  // Like here(), for launches of this thread; kOwnScope while the thread does Joulemap's own work.
  std::uint32_t launch_scope();
  void set_own_work(bool on);
  std::size_t enter(std::uint32_t scope);
  void leave();
  void leave_to(std::size_t depth);
  std::size_t depth();
  void push_region(std::string_view name);
  bool pop_region();

  bool is_hlo_trial(std::string_view module) { return hlo_.is_trial(module); }
  void learn_hlo_op(std::string_view module, std::string_view instruction, std::string_view op_name) {
    hlo_.learn(module, instruction, op_name);
  }
  std::optional<std::uint32_t> scope_of_hlo(std::string_view module, std::string_view instruction) {
    return hlo_.scope_of(module, instruction, scopes_);
  }

  void begin_backward(std::uint32_t scope);
  void end_backward();
  void backward_at(std::uint32_t scope, ThreadTrack::Entry entry = ThreadTrack::Entry::once);

  bool on_event(LoopEvent event);
  void step(std::optional<std::int64_t> number);  // called by the program itself
  void epoch(std::optional<std::int64_t> number);
  // Serial number of the current step; 0 while modules are replayed (probing).
  std::uint32_t step_serial() const { return probing_.load() != 0 ? 0 : step_serial_.load(std::memory_order_relaxed); }
  TracingPolicy::Step present_step() const;

  // Ends the current step. Until probing ends, kernels belong to no step and are recorded individually.
  void set_probing(bool on);

  // Adds one sample of a function; it represents time_ns of run time.
  void sample_function(std::string_view name, std::int64_t time_ns);

  // From here on, CPU time is distributed every 10 ms instead of at every edge: kernel launches must not wait for a
  // clock.
  void set_kernel_source(std::unique_ptr<KernelSource> source);
  void someone_profiles(bool running);
  void allow_closing(bool allowed);  // of the kernel source, while steps are untraced
  // Call before the kernel source is unloaded; finish() also calls it.
  void finish_kernels();
  void finish();
  // Called in the child of a fork, on the parent's instance.
  void abandon() noexcept;

 private:
  struct ThreadState;
  struct ThreadSlot;
  struct OpenRegion;

  ThreadState& this_thread();
  EdgeClocks clocks(ThreadState& thread);
  void begin_step(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name);
  void tick(std::int64_t capture_cpu_ns);
  void gather(MarkSink& sink, bool is_last);
  Activity take_scopes(std::int64_t now_ns);
  void tell(Diagnostics& told);

  const std::uint64_t number_;
  ScopeTable scopes_;
  HloScopes hlo_;
  KernelLog kernels_;
  std::shared_ptr<HelperAccount> helpers_;
  std::atomic<bool> exact_{true};
  std::atomic<ThreadTrack*> leader_{nullptr};
  std::atomic<std::uint32_t> backward_scope_{0};  // scope for threads that have entered none
  std::atomic<std::uint32_t> passes_{0};          // number of running backward passes
  std::atomic<std::uint32_t> step_serial_{0};
  std::atomic<std::uint32_t> step_flags_{1};
  std::atomic<std::uint64_t> probing_{0};  // id of the probing region; 0 outside of probing

  std::mutex tracks_lock_;
  std::vector<std::shared_ptr<ThreadTrack>> tracks_;

  std::mutex loop_lock_;
  StepInference inference_;
  TracingPolicy plan_;
  bool steps_are_told_ = false;
  bool epochs_are_told_ = false;

  FunctionSamples function_samples_;

  std::unique_ptr<KernelSource> owned_source_;
  // Set once. Read without a lock: the begin of a step must not wait for poll(), which waits for the driver.
  std::atomic<KernelSource*> source_{nullptr};
  std::atomic<bool> kernels_are_finished_{false};
  std::atomic<bool> rest_is_allowed_{false};

  std::int64_t started_ns_;
  std::int64_t tallied_ns_;   // end of the last interval whose scope tallies were taken
  std::int64_t gathered_ns_;  // the same for all other data
  BurstSchedule stretches_;
  std::int64_t capture_cpu_told_ns_ = 0;
  std::atomic<std::uint64_t> next_region_{1};
  std::unique_ptr<MarkLog> marks_;  // last member: its thread uses all members above
};

}  // namespace joulemap::capture

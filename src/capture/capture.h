// SPDX-License-Identifier: Apache-2.0
//
// Capture: collects what this process does and writes it to the recording: the scope of each thread, the training
// steps, and the GPU's work. A recorded process has one instance. The first call creates it; nothing destroys it,
// because threads of the program may still call during exit. The child of a fork creates its own and never touches its
// parent's (base/fork_generation.h). All functions are thread-safe.
//
// include/joulemap/capture.h documents the calls that this class implements.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "capture/burst_schedule.h"
#include "capture/capture_worker.h"
#include "capture/engine_log.h"
#include "capture/function_samples.h"
#include "capture/hlo_scopes.h"
#include "capture/kernel_log.h"
#include "capture/kernel_record_source.h"
#include "capture/mark_log.h"
#include "capture/scope_table.h"
#include "capture/step_detector.h"
#include "capture/thread_track.h"
#include "capture/tracing_policy.h"
#include "capture/untracked_cpu_time.h"

namespace joulemap::capture {

class Capture final : private WorkerCallbacks {
 public:
  explicit Capture(std::unique_ptr<CaptureSink> sink, TracingMode tracing_mode = TracingMode::automatic);

  // The instance of this process; nullptr when the process is not recorded. existing_instance() never creates one.
  static Capture* get();
  static Capture* existing_instance();
  // join_recording() reads the environment again and returns whether this process is recorded. leave_recording()
  // finishes the instance; then get() returns nullptr until the next join_recording(). finish_existing_instance()
  // finishes it and keeps it.
  static bool join_recording();
  static void leave_recording();
  static void finish_existing_instance();

  std::uint64_t instance_id() const {
    return instance_id_;
  }  // unique among the Captures of this process and of the processes it was forked from
  MarkLog& mark_log() { return mark_log_; }
  KernelLog& kernel_log() { return kernel_log_; }

  std::uint32_t find_or_add_child_scope(std::uint32_t parent, ScopeKind kind, std::string_view name) {
    return scope_table_.find_or_add_child(parent, kind, name);
  }
  std::uint32_t current_scope();
  // Scope for kernel launches of this thread: current_scope(), or kJoulemapScope while it does Joulemap's own work.
  std::uint32_t scope_for_launches();
  void set_doing_joulemap_work(bool is_doing_joulemap_work);
  std::size_t enter(std::uint32_t scope);
  void leave();
  void leave_to_depth(std::size_t depth);
  std::size_t scope_depth();
  void push_region(std::string_view name);
  bool pop_region();

  bool is_hlo_autotuning(std::string_view module) { return hlo_scopes_.is_autotuning(module); }
  void register_hlo_op(std::string_view module, std::string_view instruction, std::string_view op_name) {
    hlo_scopes_.register_op(module, instruction, op_name);
  }
  std::optional<std::uint32_t> scope_of_hlo_instruction(std::string_view module, std::string_view instruction) {
    return hlo_scopes_.find_scope(module, instruction, scope_table_);
  }

  void begin_backward(std::uint32_t scope);
  void end_backward();
  void set_backward_scope(std::uint32_t scope,
                          ThreadTrack::ReentryCounting entry = ThreadTrack::ReentryCounting::ignored);

  bool on_training_loop_event(TrainingLoopEvent event, std::uint64_t iterator = 0);
  // Reported by the program: the steps inferred so far are retracted, because the program defines what its steps are.
  void step(std::optional<std::int64_t> number);
  // A forward step of a serving engine ended; the next step begins. A program that reports steps itself has those.
  void add_engine_step(std::int64_t begin_ns, std::int64_t end_ns, std::span<const ReportedRequest> requests);
  void epoch(std::optional<std::int64_t> number);
  // Serial number of the current step; 0 before the first step, after an overlong one, and while modules
  // are replayed (probing).
  std::uint32_t step_serial() const {
    const bool is_outside_steps = probe_region_id_.load() != 0 || has_step_ended_.load(std::memory_order_relaxed);
    return is_outside_steps ? 0 : step_serial_.load(std::memory_order_relaxed);
  }
  TracingPolicy::StepTracingDecision current_tracing_decision() const;

  // Begins or ends probing, the replay of modules to measure their power. Beginning ends the current step; until
  // probing ends, kernels belong to no step and are recorded individually.
  void set_probing(bool is_probing);

  // Adds one stack sample in the function `name`; it represents time_ns of run time.
  void add_function_sample(std::string_view name, std::int64_t time_ns);

  // From here on, CPU time is attributed at every tick (10 or 50 ms) instead of at every scope entry and exit: kernel
  // launches must not wait for the reading of a CPU clock.
  void set_record_source(std::unique_ptr<KernelRecordSource> source);
  void set_other_profiler_running(bool is_profiler_running);
  void allow_detach(bool is_detach_allowed);  // whether the kernel source may close while steps are untraced
  // Fetches the remaining kernel records. Call before CUPTI is unloaded; finish() also calls it.
  void finish_record_source();
  void finish();
  // Called in the child of a fork, on the parent's instance.
  void abandon_in_child() noexcept;

 private:
  struct ThreadState;
  struct ThreadSlot;
  struct OpenRegion;

  ThreadState& this_thread_state();
  ScopeChangeClocks read_scope_change_clocks(ThreadState& thread);
  void begin_step(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name);
  void retract_inferred_steps(std::uint64_t count);
  void end_last_inferred_step();
  std::int64_t run_tick(std::int64_t worker_cpu_ns) override;
  void attribute_cpu_time(std::int64_t capture_cpu_ns);
  void collect_activity(CaptureSink& sink, bool is_last) override;
  std::vector<Activity> collect_gpu_waits(std::int64_t settled_until_ns, std::int64_t now_ns, bool tallies_due);
  void set_kernel_tracing(WaitTracing tracing, std::int64_t time_ns, std::uint32_t scope);
  void end_overlong_step(std::int64_t now_ns);
  Activity take_scope_tallies(std::int64_t now_ns);
  void add_diagnostics(Diagnostics& diagnostics) override;

  const std::uint64_t instance_id_;
  ScopeTable scope_table_;
  HloScopes hlo_scopes_;
  KernelLog kernel_log_;
  MarkLog mark_log_;
  EngineLog engine_log_;
  std::shared_ptr<UntrackedCpuTime> untracked_cpu_time_;
  std::atomic<bool> reads_cpu_at_scope_changes_{true};
  std::atomic<ThreadTrack*> last_scope_entering_track_{
      nullptr};                                    // of the thread that last entered a scope; only compared
  std::atomic<std::uint32_t> backward_scope_{0};   // in a backward pass: scope of threads that have entered none
  std::atomic<std::uint32_t> backward_passes_{0};  // number of running backward passes
  std::atomic<std::uint32_t> step_serial_{0};
  std::atomic<bool> has_step_ended_{false};  // end_overlong_step() has ended it, and no other has begun
  std::atomic<std::int64_t> step_begin_ns_{0};
  std::atomic<std::uint32_t> step_flags_{1};  // kTracedStepFlag and kSampledStepFlag (capture.cc) of the current step
  std::atomic<std::uint64_t> probe_region_id_{0};  // id of the probing region; 0 outside of probing

  std::mutex thread_tracks_lock_;
  std::vector<std::shared_ptr<ThreadTrack>> thread_tracks_;

  std::mutex step_detection_lock_;
  StepDetector step_detector_;
  TracingPolicy tracing_policy_;
  bool program_reports_steps_ = false;
  bool engine_reports_steps_ = false;
  bool program_reports_epochs_ = false;
  std::uint64_t inferred_steps_ = 0;  // those that are not retracted
  std::uint64_t inferred_epochs_ = 0;

  FunctionSampleTallies function_samples_;

  std::unique_ptr<KernelRecordSource> owned_record_source_;
  // Set once. Read without a lock: the start of a step must not wait for poll(), which waits for the driver.
  std::atomic<KernelRecordSource*> record_source_{nullptr};
  std::atomic<bool> is_record_source_finished_{false};
  std::atomic<bool> is_finished_{false};
  std::atomic<bool> is_detach_allowed_{false};

  std::int64_t start_ns_;
  std::int64_t scopes_tallied_until_ns_;  // end of the last interval whose scope tallies were taken
  std::int64_t last_tallies_taken_ns_;    // when kernel, wait and function tallies were last taken
  BurstSchedule burst_schedule_;
  std::int64_t counted_capture_cpu_ns_ = 0;
  std::atomic<std::uint64_t> next_region_id_{1};
  std::unique_ptr<CaptureWorker> worker_;  // last member: its thread uses all members above
};

}  // namespace joulemap::capture

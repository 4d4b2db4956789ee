// SPDX-License-Identifier: Apache-2.0
//
// Capture: what happens in this process, on its way into the recording: where each thread is, which step it is, what the
// GPU did. There is one for a recorded process, made by the first call and never destroyed, because threads of the host
// may call while it exits; a fork's child makes its own and leaves its parent's alone (base/fork_generation.h). Any thread
// may call anything.
//
// What each call of include/joulemap/capture.h means is said there.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "capture/close_stretches.h"
#include "capture/function_samples.h"
#include "capture/helper_account.h"
#include "capture/hlo_places.h"
#include "capture/kernel_log.h"
#include "capture/kernel_source.h"
#include "capture/listening_plan.h"
#include "capture/mark_log.h"
#include "capture/place_table.h"
#include "capture/step_inference.h"
#include "capture/thread_track.h"

namespace joulemap::capture {

class Capture {
 public:
  explicit Capture(std::unique_ptr<MarkSink> sink, Closeness closeness = Closeness::automatic);

  // Of this process; nullptr when it is not recorded. The second never makes one.
  static Capture* get();
  static Capture* existing();
  // Whether it is recorded once the environment has come to say so; and no more, until then.
  static bool join();
  static void leave_recording();
  static void finish_existing();

  std::uint64_t number() const { return number_; }  // no other Capture of this process or of its parents has it
  MarkLog& marks() { return *marks_; }
  KernelLog& kernels() { return kernels_; }

  std::uint32_t place_in(std::uint32_t parent, PlaceKind kind, std::string_view name) {
    return places_.child(parent, kind, name);
  }
  std::uint32_t here();
  // The same, for launches of this thread: kOwnPlace while it does work of ours.
  std::uint32_t launch_place();
  void set_own_work(bool on);
  std::size_t enter(std::uint32_t place);
  void leave();
  void leave_to(std::size_t depth);
  std::size_t depth();
  void push_region(std::string_view name);
  bool pop_region();

  bool is_hlo_trial(std::string_view module) { return hlo_.is_trial(module); }
  void learn_hlo_op(std::string_view module, std::string_view instruction, std::string_view op_name) {
    hlo_.learn(module, instruction, op_name);
  }
  std::optional<std::uint32_t> place_of_hlo(std::string_view module, std::string_view instruction) {
    return hlo_.place_of(module, instruction, places_);
  }

  void begin_backward(std::uint32_t place);
  void end_backward();
  void backward_at(std::uint32_t place, ThreadTrack::Entry entry = ThreadTrack::Entry::once);

  bool on_event(LoopEvent event);
  void step(std::optional<std::int64_t> number);  // of the program's own
  void epoch(std::optional<std::int64_t> number);
  // Of the present step; 0 while modules are replayed.
  std::uint32_t step_serial() const { return probing_.load() != 0 ? 0 : step_serial_.load(std::memory_order_relaxed); }
  ListeningPlan::Step present_step() const;

  // The present step ends; what runs until the end of probing is of none, and its kernels are kept one by one.
  void set_probing(bool on);

  // The program was seen in that function; it stands for so much time.
  void sample_function(std::string_view name, std::int64_t time_ns);

  // From now on CPU times are shared out every 10 ms: what launches kernels must not wait for a clock.
  void set_kernel_source(std::unique_ptr<KernelSource> source);
  void someone_profiles(bool running);
  void allow_rest(bool allowed);  // of what tells kernels, while nobody listens
  // Before whatever tells them is gone; finish does it, too.
  void finish_kernels();
  void finish();
  // In the child of a fork, of its parent's.
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
  Activity take_places(std::int64_t now_ns);
  void tell(Diagnostics& told);

  const std::uint64_t number_;
  PlaceTable places_;
  HloPlaces hlo_;
  KernelLog kernels_;
  std::shared_ptr<HelperAccount> helpers_;
  std::atomic<bool> exact_{true};
  std::atomic<ThreadTrack*> leader_{nullptr};
  std::atomic<std::uint32_t> backward_place_{0};  // of threads without a place of their own
  std::atomic<std::uint32_t> passes_{0};          // backward passes that run
  std::atomic<std::uint32_t> step_serial_{0};
  std::atomic<std::uint32_t> step_flags_{1};
  std::atomic<std::uint64_t> probing_{0};  // the mark of it

  std::mutex tracks_lock_;
  std::vector<std::shared_ptr<ThreadTrack>> tracks_;

  std::mutex loop_lock_;
  StepInference inference_;
  ListeningPlan plan_;
  bool steps_are_told_ = false;
  bool epochs_are_told_ = false;

  FunctionSamples function_samples_;

  std::unique_ptr<KernelSource> owned_source_;
  // Set once. No lock of ours: a step that begins must not wait for a poll, which waits for the driver.
  std::atomic<KernelSource*> source_{nullptr};
  std::atomic<bool> kernels_are_finished_{false};
  std::atomic<bool> rest_is_allowed_{false};

  std::int64_t started_ns_;
  std::int64_t tallied_ns_;   // places until then were taken
  std::int64_t gathered_ns_;  // and everything else until then
  CloseStretches stretches_;
  std::int64_t capture_cpu_told_ns_ = 0;
  std::atomic<std::uint64_t> next_region_{1};
  std::unique_ptr<MarkLog> marks_;  // last: its thread uses all of the above
};

}  // namespace joulemap::capture

// SPDX-License-Identifier: Apache-2.0
#include "capture/capture.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/fork_generation.h"
#include "capture/cuda_capture.h"
#include "capture/nvtx/nvtx_attach.h"
#include "capture/recording_sink.h"

namespace joulemap::capture {
namespace {

constexpr std::uint32_t kTracedStepFlag = 1;
constexpr std::uint32_t kSampledStepFlag = 2;

// Periods of the capture's ticks, which read the CPU clocks of threads and attribute CPU time to scopes: in traced
// steps, and in untraced steps, whose programs are limited by the CPU and should be disturbed less.
constexpr std::int64_t kTickPeriod_ns = 10 * kNanosecondsPerMillisecond;
constexpr std::int64_t kUntracedTickPeriod_ns = 50 * kNanosecondsPerMillisecond;

// Longest wait for kernel records before a step is written: records that are missing for longer are taken as lost.
constexpr std::int64_t kMaxRecordWait_ns = 30 * kNanosecondsPerSecond;

// An edge is an entry to or an exit from a scope. Reading CPU clocks (system calls) dominates its cost. Edges closer
// together than this share one reading, whose CPU time is split by wall time.
constexpr std::int64_t kMinCpuReadInterval_ns = 20'000;

// An untraced step is overlong when it takes kOverlongStepFactor times the median duration of traced steps, and
// kMinOverlongStep_s.
constexpr double kOverlongStepFactor = 4;
constexpr double kMinOverlongStep_s = 0.2;

constexpr std::string_view kInferredStepName = "inferred";

std::uint64_t next_instance_id() {
  static std::atomic<std::uint64_t> last_instance_id{0};
  return ++last_instance_id;
}

std::int64_t this_thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

WaitTracing wait_tracing_for_step(const TracingPolicy::StepTracingDecision& step, bool was_traced) {
  if (!step.is_traced) return WaitTracing::off;
  // Enabling kernel records takes milliseconds, in which the GPU waits because of Joulemap, not because of the program.
  if (!was_traced) return WaitTracing::warm_up;
  return step.is_warm_up || step.is_sampled ? WaitTracing::separate_step : WaitTracing::on;
}

}  // namespace

struct Capture::OpenRegion {
  std::uint64_t id;
  std::string name;
  std::size_t stack_depth;
};

struct Capture::ThreadState {
  const std::uint64_t capture_instance_id;  // instance_id() of the owning Capture; an address could be reused
  std::shared_ptr<ThreadTrack> thread_track;
  std::shared_ptr<UntrackedCpuTime> untracked_cpu_time;
  std::vector<std::size_t> backward_pass_depths;  // stack depths at which this thread began a backward pass
  std::vector<OpenRegion> open_regions;
  std::int64_t last_cpu_read_ns = 0;  // when an edge last read this thread's CPU clock
  bool is_doing_joulemap_work = false;

  ~ThreadState() {
    const std::int64_t cpu_ns = this_thread_cpu_ns();
    untracked_cpu_time->add_tracked_cpu_time(thread_track->take_cpu_increase_ns(cpu_ns));
    thread_track->add_time_since_last_update({.now_ns = monotonic_ns(), .thread_cpu_ns = cpu_ns});
    thread_track->mark_thread_ended();
  }
};

// Owner of a thread's ThreadState. State inherited through a fork is leaked: threads that do not exist in the child may
// hold its locks, and its vectors may be half updated.
struct Capture::ThreadSlot {
  ThreadState* state = nullptr;
  std::uint32_t generation = fork_generation();

  void clear() {
    if (generation == fork_generation()) delete state;
    state = nullptr;
    generation = fork_generation();
  }
  ~ThreadSlot() { clear(); }
};

Capture::Capture(std::unique_ptr<CaptureSink> sink, TracingMode tracing_mode)
    : instance_id_(next_instance_id()),
      untracked_cpu_time_(std::make_shared<UntrackedCpuTime>(process_cpu_ns())),
      tracing_policy_(tracing_mode),
      start_ns_(monotonic_ns()),
      scopes_tallied_until_ns_(start_ns_),
      last_tallies_taken_ns_(start_ns_) {
  WorkerCallbacks& work = *this;  // a private base, so that only the worker calls it
  worker_ = std::make_unique<CaptureWorker>(std::move(sink), mark_log_, &work);
}

// State of another Capture, from the parent of a fork or from a recording that has ended, is replaced.
Capture::ThreadState& Capture::this_thread_state() {
  thread_local ThreadSlot slot;
  if (slot.state != nullptr && slot.state->capture_instance_id == instance_id_) return *slot.state;
  slot.clear();
  // Before the first thread enters a scope, no time belongs to one. Without this, the first scope would get the CPU time
  // that this thread used since the last tick.
  if (last_scope_entering_track_.load(std::memory_order_relaxed) == nullptr)
    untracked_cpu_time_->take_untracked_cpu_ns(process_cpu_ns());
  clockid_t cpu_clock{};
  ::pthread_getcpuclockid(::pthread_self(), &cpu_clock);
  auto track = std::make_shared<ThreadTrack>(monotonic_ns(), this_thread_cpu_ns(), cpu_clock);
  slot.state = new ThreadState{.capture_instance_id = instance_id_,
                               .thread_track = track,
                               .untracked_cpu_time = untracked_cpu_time_,
                               .backward_pass_depths = {},
                               .open_regions = {}};
  const std::lock_guard lock(thread_tracks_lock_);
  thread_tracks_.push_back(std::move(track));
  return *slot.state;
}

ScopeChangeClocks Capture::read_scope_change_clocks(ThreadState& thread) {
  ScopeChangeClocks edge{.now_ns = monotonic_ns()};
  const std::uint32_t flags = step_flags_.load(std::memory_order_relaxed);
  edge.is_step_sampled = (flags & kSampledStepFlag) != 0;
  edge.is_scope_change_recorded =
      (flags & kTracedStepFlag) != 0 && record_source_.load(std::memory_order_relaxed) != nullptr;
  if (!reads_cpu_at_scope_changes_.load(std::memory_order_relaxed) ||
      edge.now_ns - thread.last_cpu_read_ns < kMinCpuReadInterval_ns)
    return edge;
  thread.last_cpu_read_ns = edge.now_ns;
  edge.thread_cpu_ns = this_thread_cpu_ns();
  untracked_cpu_time_->add_tracked_cpu_time(thread.thread_track->take_cpu_increase_ns(edge.thread_cpu_ns));
  if (last_scope_entering_track_.load(std::memory_order_relaxed) == thread.thread_track.get())
    edge.helper_threads_cpu_ns = untracked_cpu_time_->take_untracked_cpu_ns(process_cpu_ns());
  return edge;
}

std::uint32_t Capture::scope_for_launches() {
  return this_thread_state().is_doing_joulemap_work ? kJoulemapScope : current_scope();
}

void Capture::set_doing_joulemap_work(bool is_doing_joulemap_work) {
  this_thread_state().is_doing_joulemap_work = is_doing_joulemap_work;
}

std::uint32_t Capture::current_scope() {
  const std::uint32_t scope = this_thread_state().thread_track->current_scope();
  return scope != 0 ? scope : backward_scope_.load(std::memory_order_relaxed);
}

std::size_t Capture::enter(std::uint32_t scope) {
  ThreadState& thread = this_thread_state();
  const ScopeChangeClocks edge = read_scope_change_clocks(thread);
  last_scope_entering_track_.store(thread.thread_track.get(), std::memory_order_relaxed);
  return thread.thread_track->enter(scope, edge);
}

void Capture::leave_to_depth(std::size_t depth) {
  ThreadState& thread = this_thread_state();
  if (depth < thread.thread_track->scope_depth())
    thread.thread_track->leave_to_depth(depth, read_scope_change_clocks(thread));
}

std::size_t Capture::scope_depth() { return this_thread_state().thread_track->scope_depth(); }

void Capture::leave() {
  if (scope_depth() > 0) leave_to_depth(scope_depth() - 1);
}

void Capture::push_region(std::string_view name) {
  ThreadState& thread = this_thread_state();
  OpenRegion region{next_region_id_.fetch_add(1, std::memory_order_relaxed), std::string(name),
                    thread.thread_track->scope_depth()};
  mark_log_.add_mark(MarkKind::region_begin, region.id, name);
  enter(find_or_add_child_scope(current_scope(), ScopeKind::region, name));
  thread.open_regions.push_back(std::move(region));
}

bool Capture::pop_region() {
  ThreadState& thread = this_thread_state();
  if (thread.open_regions.empty()) return false;
  const OpenRegion& region = thread.open_regions.back();
  leave_to_depth(region.stack_depth);
  mark_log_.add_mark(MarkKind::region_end, region.id, region.name);
  thread.open_regions.pop_back();
  return true;
}

void Capture::begin_backward(std::uint32_t scope) {
  ThreadState& thread = this_thread_state();
  backward_passes_.fetch_add(1);
  backward_scope_.store(scope);
  thread.backward_pass_depths.push_back(enter(scope));
}

void Capture::end_backward() {
  ThreadState& thread = this_thread_state();
  if (thread.backward_pass_depths.empty()) return;
  leave_to_depth(thread.backward_pass_depths.back());
  thread.backward_pass_depths.pop_back();
  if (backward_passes_.fetch_sub(1) > 1) return;
  backward_scope_.store(0);
  const ScopeChangeClocks edge{.now_ns = monotonic_ns()};
  const std::lock_guard lock(thread_tracks_lock_);
  for (const auto& track : thread_tracks_) track->set_base_scope(0, edge);
}

// The thread that called backward has a stack entry for the pass, which is replaced. A thread of the autograd engine
// has none: its base scope is set.
void Capture::set_backward_scope(std::uint32_t scope, ThreadTrack::ReentryCounting entry) {
  ThreadState& thread = this_thread_state();
  const ScopeChangeClocks edge = read_scope_change_clocks(thread);
  last_scope_entering_track_.store(thread.thread_track.get(), std::memory_order_relaxed);
  if (!thread.backward_pass_depths.empty() &&
      thread.backward_pass_depths.back() + 1 == thread.thread_track->scope_depth()) {
    thread.thread_track->replace_innermost_scope(scope, edge, entry);
  } else {
    thread.thread_track->set_base_scope(scope, edge, entry);
  }
}

void Capture::begin_step(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name) {
  const TracingPolicy::StepTracingDecision step =
      tracing_policy_.decide_step_tracing(time_ns, kernel_log_.recent_step_load());
  const bool was_traced = current_tracing_decision().is_traced;
  step_flags_.store((step.is_traced ? kTracedStepFlag : 0) | (step.is_sampled ? kSampledStepFlag : 0));
  const std::uint32_t serial = step_serial_.load() + 1;
  kernel_log_.begin_step(serial, mark_log_.add_step(number, time_ns, name), time_ns,
                         step.is_traced && !reads_cpu_at_scope_changes_.load());
  step_serial_.store(serial);
  has_step_ended_.store(false);
  step_begin_ns_.store(time_ns);
  set_kernel_tracing(wait_tracing_for_step(step, was_traced), time_ns, current_scope());
}

void Capture::set_probing(bool is_probing) {
  const std::lock_guard lock(step_detection_lock_);
  if (is_probing == (probe_region_id_.load() != 0)) return;
  if (is_probing) kernel_log_.end_step_for_probing(monotonic_ns());
  const std::uint64_t mark = is_probing ? next_region_id_.fetch_add(1) : probe_region_id_.load();
  probe_region_id_.store(is_probing ? mark : 0);
  mark_log_.add_mark(is_probing ? MarkKind::region_begin : MarkKind::region_end, mark, kProbeRegionName);
  const bool is_traced = is_probing || current_tracing_decision().is_traced;
  set_kernel_tracing(is_traced ? WaitTracing::on : WaitTracing::off, monotonic_ns(), current_scope());
}

bool Capture::on_training_loop_event(TrainingLoopEvent event, std::uint64_t iterator) {
  const std::lock_guard lock(step_detection_lock_);
  const std::int64_t now_ns = monotonic_ns();
  const StepDetector::StepDetection detection = step_detector_.on_training_loop_event(event, now_ns, iterator);
  if (detection.epoch_time_ns && !program_reports_epochs_) {
    mark_log_.add_epoch({}, *detection.epoch_time_ns, kInferredStepName);
    ++inferred_epochs_;
  }
  if (program_reports_steps_ || engine_reports_steps_) return false;
  if (detection.joined_steps > 0) retract_inferred_steps(detection.joined_steps);
  if (detection.evaluation_steps > 0)
    mark_log_.add_mark_at(detection.evaluation_end_ns, MarkKind::evaluation, detection.evaluation_steps, {});
  if (detection.begins_step) {
    begin_step({}, now_ns, kInferredStepName);
    ++inferred_steps_;
  }
  return detection.begins_step;
}

void Capture::retract_inferred_steps(std::uint64_t count) {
  mark_log_.retract_steps(count);
  inferred_steps_ -= count;
}

void Capture::end_last_inferred_step() {
  const std::lock_guard lock(step_detection_lock_);
  if (program_reports_steps_ || engine_reports_steps_) return;
  if (step_detector_.is_in_empty_step()) return retract_inferred_steps(1);
  if (step_detector_.is_in_evaluation_step()) mark_log_.add_mark(MarkKind::evaluation, 1, {});
}

void Capture::step(std::optional<std::int64_t> number) {
  const std::lock_guard lock(step_detection_lock_);
  program_reports_steps_ = true;
  if (inferred_steps_ > 0) retract_inferred_steps(inferred_steps_);
  begin_step(number, monotonic_ns(), {});
}

void Capture::add_engine_step(std::int64_t begin_ns, std::int64_t end_ns, std::span<const ReportedRequest> requests) {
  engine_log_.add_step(begin_ns, end_ns, requests);
  if (end_ns <= begin_ns) return;  // an event between steps
  const std::lock_guard lock(step_detection_lock_);
  if (program_reports_steps_) return;
  engine_reports_steps_ = true;
  if (inferred_steps_ > 0) retract_inferred_steps(inferred_steps_);
  begin_step({}, monotonic_ns(), {});
}

void Capture::epoch(std::optional<std::int64_t> number) {
  const std::lock_guard lock(step_detection_lock_);
  program_reports_epochs_ = true;
  if (inferred_epochs_ > 0) mark_log_.retract_epochs(std::exchange(inferred_epochs_, 0));
  mark_log_.add_epoch(number, monotonic_ns());
}

TracingPolicy::StepTracingDecision Capture::current_tracing_decision() const {
  const std::uint32_t flags = step_flags_.load(std::memory_order_relaxed);
  return {.is_traced = (flags & kTracedStepFlag) != 0, .is_sampled = (flags & kSampledStepFlag) != 0};
}

std::int64_t Capture::run_tick(std::int64_t worker_cpu_ns) {
  attribute_cpu_time(worker_cpu_ns);
  return current_tracing_decision().is_traced ? kTickPeriod_ns : kUntracedTickPeriod_ns;
}

void Capture::attribute_cpu_time(std::int64_t capture_cpu_ns) {
  std::vector<std::shared_ptr<ThreadTrack>> tracks;
  {
    const std::lock_guard lock(thread_tracks_lock_);
    tracks = thread_tracks_;
  }
  ThreadTrack* leader = nullptr;
  for (const auto& track : tracks) {
    if (track->has_ended()) continue;
    ScopeChangeClocks edge{.now_ns = monotonic_ns(), .thread_cpu_ns = track->read_cpu_ns()};
    if (edge.thread_cpu_ns >= 0)
      untracked_cpu_time_->add_tracked_cpu_time(track->take_cpu_increase_ns(edge.thread_cpu_ns));
    track->add_time_since_last_update(edge);
    if (track.get() == last_scope_entering_track_.load()) leader = track.get();
  }
  untracked_cpu_time_->add_tracked_cpu_time(capture_cpu_ns - counted_capture_cpu_ns_);
  counted_capture_cpu_ns_ = capture_cpu_ns;
  const std::int64_t untracked_cpu_ns = untracked_cpu_time_->take_untracked_cpu_ns(process_cpu_ns());
  if (leader != nullptr && untracked_cpu_ns > 0) {
    leader->add_time_since_last_update(
        {.now_ns = monotonic_ns(), .thread_cpu_ns = -1, .helper_threads_cpu_ns = untracked_cpu_ns});
  }
  end_overlong_step(monotonic_ns());
  // Burst sampling of CPU times only when no GPU is traced: a GPU would use most of the energy.
  const std::int64_t now_ns = monotonic_ns();
  if (reads_cpu_at_scope_changes_.load() && burst_schedule_.begin_or_continue_burst(now_ns - start_ns_))
    burst_schedule_.add_burst_tallies(take_scope_tallies(now_ns));
}

// An untraced step that takes much longer than traced steps contains something else: a validation, a checkpoint, the
// end of training. The step ends now, and what follows is traced, outside of steps, until the next step begins.
void Capture::end_overlong_step(std::int64_t now_ns) {
  if (current_tracing_decision().is_traced || record_source_.load() == nullptr || probe_region_id_.load() != 0) return;
  const double usual_s = kernel_log_.recent_step_load().step_s;
  const double step_duration_s = seconds(now_ns - step_begin_ns_.load());
  if (usual_s <= 0 || step_duration_s < std::max(kOverlongStepFactor * usual_s, kMinOverlongStep_s)) return;
  const std::unique_lock lock(step_detection_lock_,
                              std::try_to_lock);  // not free: another thread begins a step right now
  if (!lock.owns_lock() || current_tracing_decision().is_traced) return;
  kernel_log_.end_step(now_ns);
  has_step_ended_.store(true);
  step_flags_.store(kTracedStepFlag);
  std::uint32_t scope = 0;
  {
    const std::lock_guard tracks(thread_tracks_lock_);
    const ThreadTrack* const leader = last_scope_entering_track_.load(std::memory_order_relaxed);
    for (const auto& track : thread_tracks_) {
      if (track.get() == leader) scope = track->current_scope();
    }
  }
  set_kernel_tracing(WaitTracing::on, now_ns, scope);
}

Activity Capture::take_scope_tallies(std::int64_t now_ns) {
  Activity activity{.begin_ns = std::exchange(scopes_tallied_until_ns_, now_ns), .end_ns = now_ns};
  std::vector<ScopeTally> rows;
  const std::lock_guard lock(thread_tracks_lock_);
  for (const auto& track : thread_tracks_) track->take_tallies(rows);
  std::erase_if(thread_tracks_, [](const auto& track) { return track->has_ended(); });
  sum_scope_tallies(rows, activity.scope_tallies);
  return activity;
}

void Capture::collect_activity(CaptureSink& sink, bool is_last) {
  engine_log_.drain_into(sink);
  if (is_last) attribute_cpu_time(counted_capture_cpu_ns_);
  const std::int64_t now_ns = monotonic_ns();
  std::int64_t delivered_until_ns = now_ns;
  if (KernelRecordSource* const source = record_source_.load()) {
    source->poll_records(now_ns);
    delivered_until_ns = source->kernels_delivered_until_ns(now_ns);
  }
  for (Activity& burst : burst_schedule_.take_burst_tallies()) sink.add(std::move(burst));
  Activity activity{.begin_ns = scopes_tallied_until_ns_, .end_ns = now_ns};
  Activity gpu_activity =
      activity;  // a separate activity: kernel records arrive late, so its interval is an earlier one
  // While probing, every collection writes and resets the tallies, so that they do not mix with those of the run.
  const bool tallies_due = is_last || probe_region_id_.load() != 0 ||
                           now_ns - last_tallies_taken_ns_ >= tally_write_period_ns(now_ns - start_ns_);
  // Limit the wait: a lost kernel record must not delay the steps forever.
  const std::int64_t settled_until_ns = is_last ? INT64_MAX : std::max(delivered_until_ns, now_ns - kMaxRecordWait_ns);
  kernel_log_.collect_kernel_activity(gpu_activity, settled_until_ns, tallies_due);
  std::vector<Activity> waits = collect_gpu_waits(settled_until_ns, now_ns, tallies_due);
  if (tallies_due) {
    activity.scope_tallies = take_scope_tallies(now_ns).scope_tallies;
    function_samples_.move_samples_into(activity.shares);
    last_tallies_taken_ns_ = now_ns;
  }
  activity.scopes = is_last ? scope_table_.all_scopes() : scope_table_.take_new_scopes();
  if (is_last) kernel_log_.collect_names(gpu_activity);
  if (!activity.empty()) sink.add(std::move(activity));
  if (!gpu_activity.empty()) sink.add(std::move(gpu_activity));
  for (Activity& wait : waits) sink.add(std::move(wait));
}

std::vector<Activity> Capture::collect_gpu_waits(std::int64_t settled_until_ns, std::int64_t now_ns, bool tallies_due) {
  std::vector<HostScopeChange> edges;
  {
    const std::lock_guard lock(thread_tracks_lock_);
    for (const auto& track : thread_tracks_) track->take_scope_changes(edges);
  }
  kernel_log_.add_host_scope_changes(std::move(edges));
  kernel_log_.attribute_gpu_waits(settled_until_ns, now_ns);
  std::vector<Activity> waits;
  if (tallies_due) kernel_log_.collect_gpu_waits(waits);
  return waits;
}

void Capture::add_diagnostics(Diagnostics& diagnostics) {
  diagnostics.add_all(engine_log_.diagnostics());
  if (scope_table_.refused_scope_count() > 0) {
    diagnostics.add({"places_refused", scope_table_.refused_scope_count(),
                     "there are too many distinct names of regions and modules",
                     "remove numbers from the names of regions"});
  }
  const KernelLog::Counts counts = kernel_log_.counts();
  if (counts.kernels_without_scope > 0) {
    diagnostics.add({"kernels_unplaced", counts.kernels_without_scope,
                     "kernels without an observed launch belong to no layer", ""});
  }
  if (counts.kernels_with_inferred_scope > 0) {
    diagnostics.add({"kernels_placed_by_repetition", counts.kernels_with_inferred_scope,
                     "kernels without an observed launch were assigned to the layers of the last observed step", ""});
  }
}

// A sample belongs to the current scope of the leading thread, which entered a scope last: it runs the training loop.
void Capture::add_function_sample(std::string_view name, std::int64_t time_ns) {
  std::uint32_t coarse_scope = 0;
  {
    const std::lock_guard lock(thread_tracks_lock_);
    const ThreadTrack* const leader = last_scope_entering_track_.load(std::memory_order_relaxed);
    for (const auto& track : thread_tracks_) {
      if (track.get() == leader) coarse_scope = track->current_scope();
    }
  }
  const std::uint32_t scope = scope_table_.find_or_add_child(coarse_scope, ScopeKind::function, name);
  function_samples_.add(coarse_scope, scope, time_ns);
}

void Capture::finish() {
  if (!is_finished_.exchange(true)) end_last_inferred_step();
  finish_record_source();
  worker_->finish();
}

// Takes no lock: a thread that held it in the parent does not exist in the child.
void Capture::abandon_in_child() noexcept {
  if (KernelRecordSource* const source = record_source_.load()) source->abandon_in_child();
}

// The part of Capture that manages the kernel source.

void Capture::set_record_source(std::unique_ptr<KernelRecordSource> source) {
  reads_cpu_at_scope_changes_.store(false);
  owned_record_source_ = std::move(source);
  owned_record_source_->set_detach_allowed(is_detach_allowed_.load());
  record_source_.store(owned_record_source_.get());
  kernel_log_.set_tracing(monotonic_ns(), WaitTracing::on, current_scope());
}

// `scope`: the current scope of the thread that runs the training loop.
void Capture::set_kernel_tracing(WaitTracing tracing, std::int64_t time_ns, std::uint32_t scope) {
  KernelRecordSource* const source = record_source_.load();
  if (source == nullptr) return;
  kernel_log_.set_tracing(time_ns, tracing, scope);
  source->set_tracing(tracing != WaitTracing::off);
}

void Capture::set_other_profiler_running(bool is_profiler_running) {
  if (is_profiler_running) {
    mark_log_.add_diagnostic({"profiler_in_process", 1,
                              "another profiler ran in this process: it slows the program and takes the GPU records",
                              "record without it"});
  }
  if (KernelRecordSource* const source = record_source_.load())
    source->set_other_profiler_running(is_profiler_running, monotonic_ns());
}

void Capture::allow_detach(bool is_detach_allowed) {
  is_detach_allowed_.store(is_detach_allowed);
  if (KernelRecordSource* const source = record_source_.load()) source->set_detach_allowed(is_detach_allowed);
}

void Capture::finish_record_source() {
  KernelRecordSource* const source = record_source_.load();
  if (source == nullptr || is_record_source_finished_.exchange(true)) return;
  Diagnostics diagnostics;
  source->finish(diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list()) mark_log_.add_diagnostic(diagnostic);
}

// The single Capture of a process: created on first use, finished at exit, dropped by the child of a fork.

namespace {

// Global state: the C interface that hooks and drivers call has no handle that could hold it.
constinit std::atomic<Capture*> current_capture{nullptr};
// Whether the environment was read: 0 no, 2 yes.
constinit std::atomic<int> environment_read_state{0};
constinit std::mutex capture_creation_lock;
constinit std::atomic<bool> is_exit_handler_registered{false};
constinit std::atomic<pid_t> capture_owner_pid{0};  // process that created `current_capture`

// Runs in the child of a fork. Resets capture_creation_lock: a thread of the parent may have held it, and does not
// exist here.
void forget_capture_in_child() {
  increment_fork_generation();
  owned_descriptors.close_all_descriptors();
  new (&capture_creation_lock) std::mutex;
  nvtx::forget_registered_names_in_child();
  forget_cuda_capture_in_child();
  if (Capture* const parents = current_capture.load()) parents->abandon_in_child();
  current_capture.store(nullptr);
  environment_read_state.store(0);
}

// Registered when the library is loaded: no thread uses the library yet, and no fork can precede the handler.
[[maybe_unused]] const int fork_handler_registration = ::pthread_atfork(nullptr, nullptr, &forget_capture_in_child);

void finish_capture_at_exit() { Capture::finish_existing_instance(); }

TracingMode read_tracing_mode_variable() {
  const char* const text = std::getenv("JOULEMAP_TRACE");
  const std::string_view tracing_mode = text == nullptr ? "" : text;
  if (tracing_mode == "full") return TracingMode::full;
  return tracing_mode == "light" ? TracingMode::light : TracingMode::automatic;
}

}  // namespace

bool Capture::join_recording() {
  if (current_capture.load() == nullptr) {
    const std::lock_guard lock(capture_creation_lock);
    environment_read_state.store(0);
  }
  return get() != nullptr;
}

// Does not delete the Capture: other threads may be inside it. Its data is no longer written.
void Capture::leave_recording() {
  Capture* const ended_capture = current_capture.exchange(nullptr);
  if (ended_capture != nullptr) ended_capture->finish();
}

// Does nothing in the child of a bare clone(), which runs no fork handlers and lacks the thread that finish() joins.
void Capture::finish_existing_instance() {
  Capture* const capture = current_capture.load();
  if (capture != nullptr && capture_owner_pid.load() == ::getpid()) capture->finish();
}

Capture* Capture::existing_instance() { return current_capture.load(std::memory_order_acquire); }

Capture* Capture::get() {
  if (environment_read_state.load(std::memory_order_acquire) == 2)
    return current_capture.load(std::memory_order_relaxed);
  const std::lock_guard lock(capture_creation_lock);
  if (environment_read_state.load() == 2) return current_capture.load();
  if (!is_exit_handler_registered.exchange(true)) std::atexit(&finish_capture_at_exit);
  if (std::unique_ptr<CaptureSink> sink = open_recording_sink()) {
    capture_owner_pid.store(::getpid());
    current_capture.store(new Capture(std::move(sink), read_tracing_mode_variable()), std::memory_order_release);
  }
  environment_read_state.store(2, std::memory_order_release);
  return current_capture.load();
}

}  // namespace joulemap::capture

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

constexpr std::uint32_t kTraced = 1;
constexpr std::uint32_t kSampled = 2;

// Periods of the capture's ticks, which read the CPU clocks of threads and attribute CPU time to scopes: in traced
// steps, and in untraced steps, whose programs are limited by the CPU and should be disturbed less.
constexpr std::int64_t kTickPeriod_ns = 10 * kNanosecondsPerMillisecond;
constexpr std::int64_t kUntracedTickPeriod_ns = 50 * kNanosecondsPerMillisecond;

// Longest wait for kernel records before a step is written: records that are missing for longer are taken as lost.
constexpr std::int64_t kSettled_ns = 30 * kNanosecondsPerSecond;

// An edge is an entry to or an exit from a scope. Reading CPU clocks (system calls) dominates its cost. Edges closer
// together than this share one reading, whose CPU time is split by wall time.
constexpr std::int64_t kMinCpuReadInterval_ns = 20'000;

// An untraced step is overlong when it takes kOverlongSteps times the median duration of traced steps, and kOverlong_s.
constexpr double kOverlongSteps = 4;
constexpr double kOverlong_s = 0.2;

constexpr std::string_view kInferred = "inferred";

std::uint64_t next_instance_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

std::int64_t this_thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

WaitTracing wait_tracing(const TracingPolicy::Decision& step, bool was_traced) {
  if (!step.traced) return WaitTracing::off;
  // Enabling kernel records takes milliseconds, in which the GPU waits because of Joulemap, not because of the program.
  if (!was_traced) return WaitTracing::warm_up;
  return step.is_first || step.sampled ? WaitTracing::apart : WaitTracing::on;
}

}  // namespace

struct Capture::OpenRegion {
  std::uint64_t id;
  std::string name;
  std::size_t depth;
};

struct Capture::ThreadState {
  const std::uint64_t capture;  // instance_id() of the owning Capture; an address could be reused
  std::shared_ptr<ThreadTrack> track;
  std::shared_ptr<UntrackedCpuTime> untracked_cpu;
  std::vector<std::size_t> passes;  // stack depths at which this thread began a backward pass
  std::vector<OpenRegion> regions;
  std::int64_t cpu_read_ns = 0;  // when an edge last read this thread's CPU clock
  bool is_joulemap_work = false;

  ~ThreadState() {
    const std::int64_t cpu_ns = this_thread_cpu_ns();
    untracked_cpu->add_tracked(track->advance_cpu(cpu_ns));
    track->tick({.now_ns = monotonic_ns(), .thread_cpu_ns = cpu_ns});
    track->end();
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

Capture::Capture(std::unique_ptr<MarkSink> sink, TracingMode tracing_mode)
    : instance_id_(next_instance_id()),
      untracked_cpu_(std::make_shared<UntrackedCpuTime>(own_cpu_ns())),
      tracing_policy_(tracing_mode),
      started_ns_(monotonic_ns()),
      scopes_tallied_until_ns_(started_ns_),
      collected_until_ns_(started_ns_) {
  PeriodicWork& work = *this;  // a private base, so that only the worker calls it
  worker_ = std::make_unique<CaptureWorker>(std::move(sink), marks_, &work);
}

// State of another Capture, from the parent of a fork or from a recording that has ended, is replaced.
Capture::ThreadState& Capture::this_thread() {
  thread_local ThreadSlot slot;
  if (slot.state != nullptr && slot.state->capture == instance_id_) return *slot.state;
  slot.clear();
  clockid_t cpu_clock{};
  ::pthread_getcpuclockid(::pthread_self(), &cpu_clock);
  auto track = std::make_shared<ThreadTrack>(monotonic_ns(), this_thread_cpu_ns(), cpu_clock);
  slot.state = new ThreadState{
      .capture = instance_id_, .track = track, .untracked_cpu = untracked_cpu_, .passes = {}, .regions = {}};
  const std::lock_guard lock(tracks_lock_);
  tracks_.push_back(std::move(track));
  return *slot.state;
}

EdgeClocks Capture::read_edge_clocks(ThreadState& thread) {
  EdgeClocks edge{.now_ns = monotonic_ns()};
  const std::uint32_t flags = step_flags_.load(std::memory_order_relaxed);
  edge.sampled = (flags & kSampled) != 0;
  edge.traced = (flags & kTraced) != 0 && kernel_source_.load(std::memory_order_relaxed) != nullptr;
  if (!reads_cpu_at_edges_.load(std::memory_order_relaxed) || edge.now_ns - thread.cpu_read_ns < kMinCpuReadInterval_ns)
    return edge;
  thread.cpu_read_ns = edge.now_ns;
  edge.thread_cpu_ns = this_thread_cpu_ns();
  untracked_cpu_->add_tracked(thread.track->advance_cpu(edge.thread_cpu_ns));
  if (leading_track_.load(std::memory_order_relaxed) == thread.track.get())
    edge.helper_threads_ns = untracked_cpu_->take_untracked_ns(own_cpu_ns());
  return edge;
}

std::uint32_t Capture::launch_scope() { return this_thread().is_joulemap_work ? kJoulemapScope : current_scope(); }

void Capture::set_joulemap_work(bool on) { this_thread().is_joulemap_work = on; }

std::uint32_t Capture::current_scope() {
  const std::uint32_t scope = this_thread().track->current_scope();
  return scope != 0 ? scope : backward_scope_.load(std::memory_order_relaxed);
}

std::size_t Capture::enter(std::uint32_t scope) {
  ThreadState& thread = this_thread();
  const EdgeClocks edge = read_edge_clocks(thread);
  leading_track_.store(thread.track.get(), std::memory_order_relaxed);
  return thread.track->enter(scope, edge);
}

void Capture::leave_to(std::size_t depth) {
  ThreadState& thread = this_thread();
  if (depth < thread.track->depth()) thread.track->leave_to(depth, read_edge_clocks(thread));
}

std::size_t Capture::depth() { return this_thread().track->depth(); }

void Capture::leave() {
  if (depth() > 0) leave_to(depth() - 1);
}

void Capture::push_region(std::string_view name) {
  ThreadState& thread = this_thread();
  OpenRegion region{next_region_id_.fetch_add(1, std::memory_order_relaxed), std::string(name), thread.track->depth()};
  marks_.mark(MarkKind::region_begin, region.id, name);
  enter(child_scope(current_scope(), ScopeKind::region, name));
  thread.regions.push_back(std::move(region));
}

bool Capture::pop_region() {
  ThreadState& thread = this_thread();
  if (thread.regions.empty()) return false;
  const OpenRegion& region = thread.regions.back();
  leave_to(region.depth);
  marks_.mark(MarkKind::region_end, region.id, region.name);
  thread.regions.pop_back();
  return true;
}

void Capture::begin_backward(std::uint32_t scope) {
  ThreadState& thread = this_thread();
  backward_passes_.fetch_add(1);
  backward_scope_.store(scope);
  thread.passes.push_back(enter(scope));
}

void Capture::end_backward() {
  ThreadState& thread = this_thread();
  if (thread.passes.empty()) return;
  leave_to(thread.passes.back());
  thread.passes.pop_back();
  if (backward_passes_.fetch_sub(1) > 1) return;
  backward_scope_.store(0);
  const EdgeClocks edge{.now_ns = monotonic_ns()};
  const std::lock_guard lock(tracks_lock_);
  for (const auto& track : tracks_) track->set_base_scope(0, edge);
}

// The thread that called backward has a stack entry for the pass, which is replaced. A thread of the autograd engine
// has none: its base scope is set.
void Capture::set_backward_scope(std::uint32_t scope, ThreadTrack::EntryCounting entry) {
  ThreadState& thread = this_thread();
  const EdgeClocks edge = read_edge_clocks(thread);
  leading_track_.store(thread.track.get(), std::memory_order_relaxed);
  if (!thread.passes.empty() && thread.passes.back() + 1 == thread.track->depth()) {
    thread.track->replace_innermost(scope, edge, entry);
  } else {
    thread.track->set_base_scope(scope, edge, entry);
  }
}

void Capture::begin_step(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name) {
  const TracingPolicy::Decision step = tracing_policy_.next(time_ns, kernels_.load());
  const bool was_traced = current_tracing().traced;
  step_flags_.store((step.traced ? kTraced : 0) | (step.sampled ? kSampled : 0));
  const std::uint32_t serial = step_serial_.load() + 1;
  kernels_.begin_step(serial, marks_.step(number, time_ns, name), time_ns, step.traced && !reads_cpu_at_edges_.load());
  step_serial_.store(serial);
  has_step_ended_.store(false);
  step_begin_ns_.store(time_ns);
  trace_kernels(wait_tracing(step, was_traced), time_ns, current_scope());
}

void Capture::set_probing(bool on) {
  const std::lock_guard lock(loop_lock_);
  if (on == (probe_region_id_.load() != 0)) return;
  if (on) kernels_.end_step_for_probing(monotonic_ns());
  const std::uint64_t mark = on ? next_region_id_.fetch_add(1) : probe_region_id_.load();
  probe_region_id_.store(on ? mark : 0);
  marks_.mark(on ? MarkKind::region_begin : MarkKind::region_end, mark, kProbeRegion);
  const bool is_traced = on || current_tracing().traced;
  trace_kernels(is_traced ? WaitTracing::on : WaitTracing::off, monotonic_ns(), current_scope());
}

bool Capture::on_event(LoopEvent event) {
  const std::lock_guard lock(loop_lock_);
  const std::int64_t now_ns = monotonic_ns();
  const StepDetector::Detection found = step_detector_.on_event(event, now_ns);
  if (found.epoch_time_ns && !program_reports_epochs_) marks_.epoch({}, *found.epoch_time_ns, kInferred);
  if (!found.step || program_reports_steps_) return false;
  begin_step({}, now_ns, kInferred);
  return true;
}

void Capture::step(std::optional<std::int64_t> number) {
  const std::lock_guard lock(loop_lock_);
  program_reports_steps_ = true;
  begin_step(number, monotonic_ns(), {});
}

void Capture::epoch(std::optional<std::int64_t> number) {
  const std::lock_guard lock(loop_lock_);
  program_reports_epochs_ = true;
  marks_.epoch(number, monotonic_ns());
}

TracingPolicy::Decision Capture::current_tracing() const {
  const std::uint32_t flags = step_flags_.load(std::memory_order_relaxed);
  return {.traced = (flags & kTraced) != 0, .sampled = (flags & kSampled) != 0};
}

std::int64_t Capture::tick(std::int64_t worker_cpu_ns) {
  account_time(worker_cpu_ns);
  return current_tracing().traced ? kTickPeriod_ns : kUntracedTickPeriod_ns;
}

void Capture::account_time(std::int64_t capture_cpu_ns) {
  std::vector<std::shared_ptr<ThreadTrack>> tracks;
  {
    const std::lock_guard lock(tracks_lock_);
    tracks = tracks_;
  }
  ThreadTrack* leader = nullptr;
  for (const auto& track : tracks) {
    if (track->ended()) continue;
    EdgeClocks edge{.now_ns = monotonic_ns(), .thread_cpu_ns = track->read_cpu_ns()};
    if (edge.thread_cpu_ns >= 0) untracked_cpu_->add_tracked(track->advance_cpu(edge.thread_cpu_ns));
    track->tick(edge);
    if (track.get() == leading_track_.load()) leader = track.get();
  }
  untracked_cpu_->add_tracked(capture_cpu_ns - counted_capture_cpu_ns_);
  counted_capture_cpu_ns_ = capture_cpu_ns;
  const std::int64_t credit_ns = untracked_cpu_->take_untracked_ns(own_cpu_ns());
  if (leader != nullptr && credit_ns > 0) {
    leader->tick({.now_ns = monotonic_ns(), .thread_cpu_ns = -1, .helper_threads_ns = credit_ns});
  }
  end_overlong_step(monotonic_ns());
  // Burst sampling of CPU times only when no GPU is traced: a GPU would use most of the energy.
  const std::int64_t now_ns = monotonic_ns();
  if (reads_cpu_at_edges_.load() && burst_schedule_.is_in_burst(now_ns - started_ns_))
    burst_schedule_.add(take_scope_tallies(now_ns));
}

// An untraced step that takes much longer than traced steps contains something else: a validation, a checkpoint, the
// end of training. The step ends now, and what follows is traced, outside of steps, until the next step begins.
void Capture::end_overlong_step(std::int64_t now_ns) {
  if (current_tracing().traced || kernel_source_.load() == nullptr || probe_region_id_.load() != 0) return;
  const double usual_s = kernels_.load().step_s;
  const double took_s = seconds(now_ns - step_begin_ns_.load());
  if (usual_s <= 0 || took_s < std::max(kOverlongSteps * usual_s, kOverlong_s)) return;
  const std::unique_lock lock(loop_lock_, std::try_to_lock);  // not free: another thread begins a step right now
  if (!lock.owns_lock() || current_tracing().traced) return;
  kernels_.end_step(now_ns);
  has_step_ended_.store(true);
  step_flags_.store(kTraced);
  std::uint32_t scope = 0;
  {
    const std::lock_guard tracks(tracks_lock_);
    const ThreadTrack* const leader = leading_track_.load(std::memory_order_relaxed);
    for (const auto& track : tracks_) {
      if (track.get() == leader) scope = track->current_scope();
    }
  }
  trace_kernels(WaitTracing::on, now_ns, scope);
}

Activity Capture::take_scope_tallies(std::int64_t now_ns) {
  Activity activity{.begin_ns = std::exchange(scopes_tallied_until_ns_, now_ns), .end_ns = now_ns};
  std::vector<ScopeTally> rows;
  const std::lock_guard lock(tracks_lock_);
  for (const auto& track : tracks_) track->take(rows);
  std::erase_if(tracks_, [](const auto& track) { return track->ended(); });
  sum_tallies(rows, activity.scope_tallies);
  return activity;
}

void Capture::collect_activity(MarkSink& sink, bool is_last) {
  engine_.drain_into(sink);
  if (is_last) account_time(counted_capture_cpu_ns_);
  const std::int64_t now_ns = monotonic_ns();
  std::int64_t delivered_until_ns = now_ns;
  if (KernelSource* const source = kernel_source_.load()) {
    source->poll(now_ns);
    delivered_until_ns = source->delivered_until_ns(now_ns);
  }
  for (Activity& burst : burst_schedule_.take()) sink.add(std::move(burst));
  Activity activity{.begin_ns = scopes_tallied_until_ns_, .end_ns = now_ns};
  Activity on_gpu = activity;  // a separate activity: kernel records arrive late, so its interval is an earlier one
  // While probing, tallies are taken at every collection, so that they do not mix with those of the run.
  const bool tallies_due =
      is_last || probe_region_id_.load() != 0 || now_ns - collected_until_ns_ >= tally_period_ns(now_ns - started_ns_);
  // Limit the wait: a lost kernel record must not delay the steps forever.
  const std::int64_t settled_ns = is_last ? INT64_MAX : std::max(delivered_until_ns, now_ns - kSettled_ns);
  kernels_.collect(on_gpu, settled_ns, tallies_due);
  std::vector<Activity> waits = collect_waits(settled_ns, now_ns, tallies_due);
  if (tallies_due) {
    activity.scope_tallies = take_scope_tallies(now_ns).scope_tallies;
    function_samples_.take(activity.shares);
    collected_until_ns_ = now_ns;
  }
  activity.scopes = is_last ? scopes_.all_scopes() : scopes_.take_new();
  if (is_last) kernels_.collect_names(on_gpu);
  if (!activity.empty()) sink.add(std::move(activity));
  if (!on_gpu.empty()) sink.add(std::move(on_gpu));
  for (Activity& wait : waits) sink.add(std::move(wait));
}

std::vector<Activity> Capture::collect_waits(std::int64_t settled_ns, std::int64_t now_ns, bool tallies_due) {
  std::vector<HostEdge> edges;
  {
    const std::lock_guard lock(tracks_lock_);
    for (const auto& track : tracks_) track->take_edges(edges);
  }
  kernels_.add_host_edges(std::move(edges));
  kernels_.resolve_waits(settled_ns, now_ns);
  std::vector<Activity> waits;
  if (tallies_due) kernels_.collect_waits(waits);
  return waits;
}

void Capture::add_diagnostics(Diagnostics& diagnostics) {
  diagnostics.add_all(engine_.diagnostics());
  if (scopes_.refused_count() > 0) {
    diagnostics.add({"places_refused", scopes_.refused_count(),
                     "there are too many distinct names of regions and modules",
                     "remove numbers from the names of regions"});
  }
  const KernelLog::Counts counts = kernels_.counts();
  if (counts.without_scope > 0) {
    diagnostics.add(
        {"kernels_unplaced", counts.without_scope, "kernels without an observed launch belong to no layer", ""});
  }
  if (counts.scoped_by_repetition > 0) {
    diagnostics.add({"kernels_placed_by_repetition", counts.scoped_by_repetition,
                     "kernels without an observed launch were assigned to the layers of the last observed step", ""});
  }
}

// A sample belongs to the current scope of the leading thread, which entered a scope last: it runs the training loop.
void Capture::add_function_sample(std::string_view name, std::int64_t time_ns) {
  std::uint32_t coarse = 0;
  {
    const std::lock_guard lock(tracks_lock_);
    const ThreadTrack* const leader = leading_track_.load(std::memory_order_relaxed);
    for (const auto& track : tracks_) {
      if (track.get() == leader) coarse = track->current_scope();
    }
  }
  const std::uint32_t scope = scopes_.child(coarse, ScopeKind::function, name);
  function_samples_.add(coarse, scope, time_ns);
}

void Capture::finish() {
  finish_kernel_source();
  worker_->finish();
}

// Takes no lock: a thread that held it in the parent does not exist in the child.
void Capture::abandon_in_child() noexcept {
  if (KernelSource* const source = kernel_source_.load()) source->abandon_in_child();
}

// The part of Capture that manages the kernel source.

void Capture::set_kernel_source(std::unique_ptr<KernelSource> source) {
  reads_cpu_at_edges_.store(false);
  owned_kernel_source_ = std::move(source);
  owned_kernel_source_->allow_detach(detach_is_allowed_.load());
  kernel_source_.store(owned_kernel_source_.get());
  kernels_.set_tracing(monotonic_ns(), WaitTracing::on, current_scope());
}

// `scope`: the current scope of the thread that runs the training loop.
void Capture::trace_kernels(WaitTracing tracing, std::int64_t time_ns, std::uint32_t scope) {
  KernelSource* const source = kernel_source_.load();
  if (source == nullptr) return;
  kernels_.set_tracing(time_ns, tracing, scope);
  source->set_tracing(tracing != WaitTracing::off);
}

void Capture::on_other_profiler(bool running) {
  if (running) {
    marks_.add_diagnostic({"profiler_in_process", 1,
                           "another profiler ran in this process: it slows the program and takes the GPU records",
                           "record without it"});
  }
  if (KernelSource* const source = kernel_source_.load()) source->on_other_profiler(running, monotonic_ns());
}

void Capture::allow_detach(bool allowed) {
  detach_is_allowed_.store(allowed);
  if (KernelSource* const source = kernel_source_.load()) source->allow_detach(allowed);
}

void Capture::finish_kernel_source() {
  KernelSource* const source = kernel_source_.load();
  if (source == nullptr || kernel_source_is_finished_.exchange(true)) return;
  Diagnostics diagnostics;
  source->finish(diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list()) marks_.add_diagnostic(diagnostic);
}

// The single Capture of a process: created on first use, finished at exit, dropped by the child of a fork.

namespace {

// Global state: the C interface that hooks and drivers call has no handle that could hold it.
constinit std::atomic<Capture*> current{nullptr};
// Whether the environment was read: 0 no, 2 yes.
constinit std::atomic<int> environment_was_read{0};
constinit std::mutex creation_lock;
constinit std::atomic<bool> finishes_at_exit{false};
constinit std::atomic<pid_t> owner{0};  // process that created `current`

// Runs in the child of a fork. Resets creation_lock: a thread of the parent may have held it, and does not exist here.
void forget_in_child() {
  begin_fork_generation();
  owned_descriptors.close_all();
  new (&creation_lock) std::mutex;
  nvtx::forget_names_in_child();
  forget_cuda_in_child();
  if (Capture* const parents = current.load()) parents->abandon_in_child();
  current.store(nullptr);
  environment_was_read.store(0);
}

// Registered when the library is loaded: no thread uses the library yet, and no fork can precede the handler.
[[maybe_unused]] const int fork_handler = ::pthread_atfork(nullptr, nullptr, &forget_in_child);

void finish_at_exit() { Capture::finish_existing(); }

TracingMode requested_tracing_mode() {
  const char* const text = std::getenv("JOULEMAP_TRACE");
  const std::string_view tracing_mode = text == nullptr ? "" : text;
  if (tracing_mode == "full") return TracingMode::full;
  return tracing_mode == "light" ? TracingMode::light : TracingMode::automatic;
}

}  // namespace

bool Capture::join_recording() {
  if (current.load() == nullptr) {
    const std::lock_guard lock(creation_lock);
    environment_was_read.store(0);
  }
  return get() != nullptr;
}

// Does not delete the Capture: other threads may be inside it. Its data is no longer written.
void Capture::leave_recording() {
  Capture* const ended = current.exchange(nullptr);
  if (ended != nullptr) ended->finish();
}

// Does nothing in the child of a bare clone(), which runs no fork handlers and lacks the thread that finish() joins.
void Capture::finish_existing() {
  Capture* const capture = current.load();
  if (capture != nullptr && owner.load() == ::getpid()) capture->finish();
}

Capture* Capture::existing() { return current.load(std::memory_order_acquire); }

Capture* Capture::get() {
  if (environment_was_read.load(std::memory_order_acquire) == 2) return current.load(std::memory_order_relaxed);
  const std::lock_guard lock(creation_lock);
  if (environment_was_read.load() == 2) return current.load();
  if (!finishes_at_exit.exchange(true)) std::atexit(&finish_at_exit);
  if (std::unique_ptr<MarkSink> sink = open_recording_sink()) {
    owner.store(::getpid());
    current.store(new Capture(std::move(sink), requested_tracing_mode()), std::memory_order_release);
  }
  environment_was_read.store(2, std::memory_order_release);
  return current.load();
}

}  // namespace joulemap::capture

// SPDX-License-Identifier: Apache-2.0
#include "capture/capture.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/fork_generation.h"

namespace joulemap::capture {
namespace {

constexpr std::uint32_t kTraced = 1;
constexpr std::uint32_t kSampled = 2;

// Period of the ticks that distribute CPU time. Untraced steps are CPU bound, so they are disturbed less often.
constexpr std::int64_t kTickPeriod_ns = 10 * kNanosecondsPerMillisecond;
constexpr std::int64_t kTickPeriodWhenLeftAlone_ns = 50 * kNanosecondsPerMillisecond;

// A kernel's record has arrived by then, or it never will.
constexpr std::int64_t kSettled_ns = 30 * kNanosecondsPerSecond;

// Reading CPU clocks dominates the cost of an edge (system calls). Edges closer together than this share one reading,
// whose CPU time is split by wall time.
constexpr std::int64_t kCloseEdges_ns = 20'000;

constexpr std::string_view kInferred = "inferred";

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

std::int64_t this_thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace

struct Capture::OpenRegion {
  std::uint64_t id;
  std::string name;
  std::size_t depth;
};

struct Capture::ThreadState {
  const std::uint64_t capture;  // number of the owner; its address could be reused
  std::shared_ptr<ThreadTrack> track;
  std::shared_ptr<HelperAccount> helpers;
  std::vector<std::size_t> passes;  // stack depths at which this thread began a backward pass
  std::vector<OpenRegion> regions;
  std::int64_t cpu_read_ns = 0;  // when an edge last read this thread's CPU clock
  bool does_own_work = false;

  ~ThreadState() {
    const std::int64_t cpu_ns = this_thread_cpu_ns();
    helpers->add_traced(track->advance_cpu(cpu_ns));
    track->tick({.now_ns = monotonic_ns(), .thread_cpu_ns = cpu_ns});
    track->end();
  }
};

// State inherited through a fork is leaked: vanished threads may hold its locks, and its vectors may be half grown.
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

Capture::Capture(std::unique_ptr<MarkSink> sink, TracingMode closeness)
    : number_(next_number()),
      helpers_(std::make_shared<HelperAccount>(own_cpu_ns())),
      plan_(closeness),
      started_ns_(monotonic_ns()),
      tallied_ns_(started_ns_),
      gathered_ns_(started_ns_) {
  LogCallbacks callbacks;
  callbacks.tick = [this](std::int64_t own_cpu_ns) {
    tick(own_cpu_ns);
    return present_step().followed ? kTickPeriod_ns : kTickPeriodWhenLeftAlone_ns;
  };
  callbacks.gather = [this](MarkSink& to, bool is_last) { gather(to, is_last); };
  callbacks.tell = [this](Diagnostics& told) { this->tell(told); };
  marks_ = std::make_unique<MarkLog>(std::move(sink), std::move(callbacks));
}

// State of another capture comes from the parent of a fork or from a recording that has ended.
Capture::ThreadState& Capture::this_thread() {
  thread_local ThreadSlot slot;
  if (slot.state != nullptr && slot.state->capture == number_) return *slot.state;
  slot.clear();
  clockid_t cpu_clock{};
  ::pthread_getcpuclockid(::pthread_self(), &cpu_clock);
  auto track = std::make_shared<ThreadTrack>(monotonic_ns(), this_thread_cpu_ns(), cpu_clock);
  slot.state = new ThreadState{.capture = number_, .track = track, .helpers = helpers_, .passes = {}, .regions = {}};
  const std::lock_guard lock(tracks_lock_);
  tracks_.push_back(std::move(track));
  return *slot.state;
}

EdgeClocks Capture::clocks(ThreadState& thread) {
  EdgeClocks edge{.now_ns = monotonic_ns()};
  edge.sampled = (step_flags_.load(std::memory_order_relaxed) & kSampled) != 0;
  if (!exact_.load(std::memory_order_relaxed) || edge.now_ns - thread.cpu_read_ns < kCloseEdges_ns) return edge;
  thread.cpu_read_ns = edge.now_ns;
  edge.thread_cpu_ns = this_thread_cpu_ns();
  helpers_->add_traced(thread.track->advance_cpu(edge.thread_cpu_ns));
  if (leader_.load(std::memory_order_relaxed) == thread.track.get()) edge.helpers_ns = helpers_->draw(own_cpu_ns());
  return edge;
}

std::uint32_t Capture::launch_scope() { return this_thread().does_own_work ? kOwnScope : here(); }

void Capture::set_own_work(bool on) { this_thread().does_own_work = on; }

std::uint32_t Capture::here() {
  const std::uint32_t scope = this_thread().track->here();
  return scope != 0 ? scope : backward_scope_.load(std::memory_order_relaxed);
}

std::size_t Capture::enter(std::uint32_t scope) {
  ThreadState& thread = this_thread();
  const EdgeClocks edge = clocks(thread);
  leader_.store(thread.track.get(), std::memory_order_relaxed);
  return thread.track->enter(scope, edge);
}

void Capture::leave_to(std::size_t depth) {
  ThreadState& thread = this_thread();
  if (depth < thread.track->depth()) thread.track->leave_to(depth, clocks(thread));
}

std::size_t Capture::depth() { return this_thread().track->depth(); }

void Capture::leave() {
  if (depth() > 0) leave_to(depth() - 1);
}

void Capture::push_region(std::string_view name) {
  ThreadState& thread = this_thread();
  OpenRegion region{next_region_.fetch_add(1, std::memory_order_relaxed), std::string(name), thread.track->depth()};
  marks_->mark(MarkKind::region_begin, region.id, name);
  enter(scope_in(here(), ScopeKind::region, name));
  thread.regions.push_back(std::move(region));
}

bool Capture::pop_region() {
  ThreadState& thread = this_thread();
  if (thread.regions.empty()) return false;
  const OpenRegion& region = thread.regions.back();
  leave_to(region.depth);
  marks_->mark(MarkKind::region_end, region.id, region.name);
  thread.regions.pop_back();
  return true;
}

void Capture::begin_backward(std::uint32_t scope) {
  ThreadState& thread = this_thread();
  passes_.fetch_add(1);
  backward_scope_.store(scope);
  thread.passes.push_back(enter(scope));
}

void Capture::end_backward() {
  ThreadState& thread = this_thread();
  if (thread.passes.empty()) return;
  leave_to(thread.passes.back());
  thread.passes.pop_back();
  if (passes_.fetch_sub(1) > 1) return;
  backward_scope_.store(0);
  const EdgeClocks edge{.now_ns = monotonic_ns()};
  const std::lock_guard lock(tracks_lock_);
  for (const auto& track : tracks_) track->lend(0, edge);
}

// The thread that called backward has a stack entry for the pass; a thread of the autograd engine is lent the scope.
void Capture::backward_at(std::uint32_t scope, ThreadTrack::Entry entry) {
  ThreadState& thread = this_thread();
  const EdgeClocks edge = clocks(thread);
  leader_.store(thread.track.get(), std::memory_order_relaxed);
  if (!thread.passes.empty() && thread.passes.back() + 1 == thread.track->depth()) {
    thread.track->move_to(scope, edge, entry);
  } else {
    thread.track->lend(scope, edge, entry);
  }
}

void Capture::begin_step(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name) {
  const TracingPolicy::Step step = plan_.next(time_ns, kernels_.load());
  step_flags_.store((step.followed ? kTraced : 0) | (step.sampled ? kSampled : 0));
  const std::uint32_t serial = step_serial_.load() + 1;
  kernels_.begin_step(serial, marks_->step(number, time_ns, name), time_ns, step.followed && !exact_.load());
  step_serial_.store(serial);
  if (KernelSource* const source = source_.load()) source->listen(step.followed);
}

void Capture::set_probing(bool on) {
  const std::lock_guard lock(loop_lock_);
  if (on == (probing_.load() != 0)) return;
  if (on) kernels_.end_step(monotonic_ns());
  const std::uint64_t mark = on ? next_region_.fetch_add(1) : probing_.load();
  probing_.store(on ? mark : 0);
  marks_->mark(on ? MarkKind::region_begin : MarkKind::region_end, mark, kProbeRegion);
  if (KernelSource* const source = source_.load()) source->listen(on || present_step().followed);
}

bool Capture::on_event(LoopEvent event) {
  const std::lock_guard lock(loop_lock_);
  const std::int64_t now_ns = monotonic_ns();
  const StepInference::Found found = inference_.on(event, now_ns);
  if (found.epoch_time_ns && !epochs_are_told_) marks_->epoch({}, *found.epoch_time_ns, kInferred);
  if (!found.step || steps_are_told_) return false;
  begin_step({}, now_ns, kInferred);
  return true;
}

void Capture::step(std::optional<std::int64_t> number) {
  const std::lock_guard lock(loop_lock_);
  steps_are_told_ = true;
  begin_step(number, monotonic_ns(), {});
}

void Capture::epoch(std::optional<std::int64_t> number) {
  const std::lock_guard lock(loop_lock_);
  epochs_are_told_ = true;
  marks_->epoch(number, monotonic_ns());
}

TracingPolicy::Step Capture::present_step() const {
  const std::uint32_t flags = step_flags_.load(std::memory_order_relaxed);
  return {.followed = (flags & kTraced) != 0, .sampled = (flags & kSampled) != 0};
}

void Capture::tick(std::int64_t capture_cpu_ns) {
  std::vector<std::shared_ptr<ThreadTrack>> tracks;
  {
    const std::lock_guard lock(tracks_lock_);
    tracks = tracks_;
  }
  ThreadTrack* leader = nullptr;
  for (const auto& track : tracks) {
    if (track->ended()) continue;
    EdgeClocks edge{.now_ns = monotonic_ns(), .thread_cpu_ns = track->read_cpu_ns()};
    if (edge.thread_cpu_ns >= 0) helpers_->add_traced(track->advance_cpu(edge.thread_cpu_ns));
    track->tick(edge);
    if (track.get() == leader_.load()) leader = track.get();
  }
  helpers_->add_traced(capture_cpu_ns - capture_cpu_told_ns_);
  capture_cpu_told_ns_ = capture_cpu_ns;
  const std::int64_t credit_ns = helpers_->draw(own_cpu_ns());
  if (leader != nullptr && credit_ns > 0) {
    leader->tick({.now_ns = monotonic_ns(), .thread_cpu_ns = -1, .helpers_ns = credit_ns});
  }
  // Burst sampling only without a GPU: with one, the GPU uses most of the energy.
  const std::int64_t now_ns = monotonic_ns();
  if (exact_.load() && stretches_.ends_at(now_ns - started_ns_)) stretches_.add(take_scopes(now_ns));
}

Activity Capture::take_scopes(std::int64_t now_ns) {
  Activity activity{.begin_ns = std::exchange(tallied_ns_, now_ns), .end_ns = now_ns};
  std::vector<ScopeTally> rows;
  const std::lock_guard lock(tracks_lock_);
  for (const auto& track : tracks_) track->take(rows);
  std::erase_if(tracks_, [](const auto& track) { return track->ended(); });
  add_up(rows, activity.scope_tallies);
  return activity;
}

void Capture::gather(MarkSink& sink, bool is_last) {
  if (is_last) tick(capture_cpu_told_ns_);
  const std::int64_t now_ns = monotonic_ns();
  std::int64_t delivered_until_ns = now_ns;
  if (KernelSource* const source = source_.load()) {
    source->poll(now_ns);
    delivered_until_ns = source->delivered_until_ns(now_ns);
  }
  for (Activity& stretch : stretches_.take()) sink.add(std::move(stretch));
  Activity activity{.begin_ns = tallied_ns_, .end_ns = now_ns};
  Activity on_gpu = activity;  // separate, because kernel records arrive late
  // Keep the tallies of probing apart from those of the run.
  const bool tallies_due =
      is_last || probing_.load() != 0 || now_ns - gathered_ns_ >= tally_period_ns(now_ns - started_ns_);
  // Limit the wait: a lost kernel record must not delay the steps forever.
  const std::int64_t settled_ns = is_last ? INT64_MAX : std::max(delivered_until_ns, now_ns - kSettled_ns);
  kernels_.collect(on_gpu, settled_ns, tallies_due);
  if (tallies_due) {
    activity.scope_tallies = take_scopes(now_ns).scope_tallies;
    function_samples_.take(activity.shares);
    gathered_ns_ = now_ns;
  }
  activity.scopes = is_last ? scopes_.all() : scopes_.take_new();
  if (is_last) kernels_.collect_names(on_gpu);
  if (!activity.empty()) sink.add(std::move(activity));
  if (!on_gpu.empty()) sink.add(std::move(on_gpu));
}

void Capture::tell(Diagnostics& told) {
  if (scopes_.refused() > 0) {
    told.add({"places_refused", scopes_.refused(), "there were too many regions and modules of different names",
              "leave numbers out of the names of regions"});
  }
  const KernelLog::Counts counts = kernels_.counts();
  if (counts.unplaced > 0) {
    told.add({"kernels_unplaced", counts.unplaced, "kernels whose launch was not seen belong to no layer", ""});
  }
  if (counts.repeated > 0) {
    told.add({"kernels_placed_by_repetition", counts.repeated,
              "kernels whose launch was not seen were given the layers of those in the last step that was seen", ""});
  }
}

// Samples belong to the leading thread: it runs the training loop.
void Capture::sample_function(std::string_view name, std::int64_t time_ns) {
  std::uint32_t coarse = 0;
  {
    const std::lock_guard lock(tracks_lock_);
    const ThreadTrack* const leader = leader_.load(std::memory_order_relaxed);
    for (const auto& track : tracks_) {
      if (track.get() == leader) coarse = track->here();
    }
  }
  const std::uint32_t scope = scopes_.child(coarse, ScopeKind::function, name);
  function_samples_.add(coarse, scope, time_ns);
}

void Capture::finish() {
  finish_kernels();
  marks_->finish();
}

// Takes no lock: the thread that holds it may not exist in the child.
void Capture::abandon() noexcept {
  if (KernelSource* const source = source_.load()) source->abandon();
}

}  // namespace joulemap::capture

// SPDX-License-Identifier: Apache-2.0
#include "ingest/scope_assignment/thread_scope_tracker.h"

#include <algorithm>

#include "base/clock.h"

namespace joulemap::ingest {
namespace {

// Old traces round times to microseconds: an event that overlaps the end of another by less is inside it.
constexpr std::int64_t kRounding_ns = kNanosecondsPerMicrosecond;

}  // namespace

ThreadScopeTracker::ThreadScopeTracker(const TraceSurvey& survey, const TraceNames& names, ModulePaths& modules,
                                       ScopeInterner& tree, ScopeSums& sums, std::size_t threads)
    : survey_(survey),
      names_(names),
      modules_(modules),
      tree_(tree),
      sums_(sums),
      threads_(threads),
      last_scopes_(names.size()),
      texts_{tree.text("train"),      tree.text("inference"), tree.text("forward"),   tree.text("backward"),
             tree.text("recompute"),  tree.text("loss"),      tree.text("optimizer"), tree.text("zero_grad"),
             tree.text("dataloader"), tree.text("input"),     tree.text("gradients"), tree.text("comm")} {}

bool ThreadScopeTracker::has_open_scopes() const {
  return std::any_of(active_threads_.begin(), active_threads_.end(),
                     [&](std::uint32_t thread) { return !threads_[thread].stack.empty(); });
}

std::uint32_t ThreadScopeTracker::phase_scope(std::uint32_t enclosing_region, bool is_training,
                                              std::uint32_t phase_text) {
  // Cache of the last result. Not used once the tree has refused a scope, because each refusal is counted.
  if (last_phase_.scope != 0 && last_phase_.enclosing_region == enclosing_region &&
      last_phase_.is_training == is_training && last_phase_.text == phase_text) {
    return last_phase_.scope;
  }
  const std::uint32_t mode =
      tree_.child(enclosing_region, ScopeKind::mode, is_training ? texts_.train : texts_.inference);
  const std::uint32_t phase = tree_.child(mode, ScopeKind::phase, phase_text);
  if (tree_.refused_count() == 0) last_phase_ = {enclosing_region, phase_text, phase, is_training};
  return phase;
}

// The loss phase ends when a backward pass begins on any thread.
std::uint32_t ThreadScopeTracker::gap_scope(const Thread& thread, const Context& context) {
  if (thread.gap == GapPhase::none) return 0;
  const bool is_input = thread.gap == GapPhase::input;
  const std::uint32_t after_forward =
      backward_pass_count_ > thread.backward_passes_before_gap ? texts_.gradients : texts_.loss;
  return phase_scope(context.container, true, is_input ? texts_.input : after_forward);
}

std::uint32_t ThreadScopeTracker::gap_or_function_scope(const Thread& thread) {
  const Context& context = thread.stack.back().context;
  const std::uint32_t between = gap_scope(thread, context);
  if (between == 0) return context.scope;
  return context.function == 0 ? between : tree_.child(between, ScopeKind::function, context.function - 1);
}

// The next two functions run for every event.
inline std::uint32_t ThreadScopeTracker::current_scope(const Thread& thread) {
  const Context& context = thread.stack.back().context;
  const bool is_known = thread.gap == GapPhase::none || context.phase != 0 || context.in_op;
  return is_known ? context.scope : gap_or_function_scope(thread);
}

inline void ThreadScopeTracker::add_time_until(Thread& thread, std::int64_t until_ns) {
  if (until_ns <= thread.last_ns) return;
  if (!thread.stack.empty()) {
    if (const std::uint32_t scope = current_scope(thread)) sums_.add_time(scope, until_ns - thread.last_ns);
  }
  thread.last_ns = until_ns;
}

void ThreadScopeTracker::pop_frames_until(Thread& thread, std::int64_t time_ns) {
  while (!thread.stack.empty() && thread.stack.back().end_ns <= time_ns) {
    const Frame& frame = thread.stack.back();
    add_time_until(thread, frame.end_ns);
    if (frame.gap_after != GapPhase::none) {
      thread.gap = frame.gap_after;
      thread.backward_passes_before_gap = backward_pass_count_;
      sums_.count(gap_scope(thread, Context{}));
    } else if (frame.ends_gap) {
      thread.gap = GapPhase::none;
    }
    thread.stack.pop_back();
  }
  add_time_until(thread, time_ns);
}

void ThreadScopeTracker::advance_to(std::int64_t until_ns) {
  std::erase_if(active_threads_, [&](std::uint32_t number) {
    Thread& thread = threads_[number];
    pop_frames_until(thread, until_ns);
    thread.is_in_active_list = !thread.stack.empty();
    return !thread.is_in_active_list;
  });
}

// Makes the open frames enclose the event. Returns true if the event was cut. An annotation overlaps the functions
// that begin and end it, which is not damage. Neither is overlapping the end of a frame that was cut.
bool ThreadScopeTracker::fit_into_frames(Thread& thread, const TraceEvent& event, std::int64_t& end_ns) {
  while (!thread.stack.empty() && end_ns > thread.stack.back().end_ns) {
    Frame& outer = thread.stack.back();
    const std::int64_t overhang_ns = end_ns - outer.end_ns;
    const bool is_begun_by_it = event.kind == EventKind::annotation && outer.kind == EventKind::function;
    const bool ends_it = event.kind == EventKind::function && outer.kind == EventKind::annotation;
    if (overhang_ns > kRounding_ns && !is_begun_by_it && !ends_it && !outer.is_truncated) ++truncated_events_;
    const bool is_within = overhang_ns <= kRounding_ns || overhang_ns < outer.end_ns - event.start_ns;
    if (ends_it || (is_within && !is_begun_by_it)) {
      end_ns = outer.end_ns;
      return true;
    }
    outer.end_ns = event.start_ns;
    pop_frames_until(thread, event.start_ns);
  }
  return false;
}

void ThreadScopeTracker::add(TraceEvent& event) {
  Thread& thread = threads_[event.track];
  if (thread.stack.empty()) thread.last_ns = std::max(thread.last_ns, event.start_ns);
  pop_frames_until(thread, event.start_ns);
  if (event.kind == EventKind::api) {
    event.detail = thread.stack.empty() ? 0 : current_scope(thread);
    return;
  }
  std::int64_t end_ns = end_ns_of(event);
  const bool is_truncated = fit_into_frames(thread, event, end_ns);
  Frame& frame = thread.stack.emplace_back();
  if (thread.stack.size() > 1) frame.context = thread.stack.end()[-2].context;
  frame.kind = event.kind;
  frame.begin_ns = event.start_ns;
  frame.end_ns = end_ns;
  frame.is_truncated = is_truncated;
  if (enter(thread, event, frame)) {
    if (!thread.is_in_active_list) active_threads_.push_back(event.track);
    thread.is_in_active_list = true;
    event.detail = current_scope(thread);
  } else {
    thread.stack.pop_back();
  }
}

// Returns false if the event does not change the scope of its thread.
bool ThreadScopeTracker::enter(Thread& thread, const TraceEvent& event, Frame& frame) {
  switch (event.kind) {
    case EventKind::annotation:
      return enter_annotation(event, frame);
    case EventKind::module:
      enter_module(event, frame);
      return true;
    case EventKind::function:
      enter_function(event, frame);
      return true;
    default:
      enter_op(thread, event, frame);
      return true;
  }
}

}  // namespace joulemap::ingest

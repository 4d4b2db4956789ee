// SPDX-License-Identifier: Apache-2.0
#include "ingest/placing/thread_scopes.h"

#include <algorithm>

#include "base/clock.h"

namespace joulemap::ingest {
namespace {

// Old traces round times to microseconds: an event that overlaps the end of another by less is inside it.
constexpr std::int64_t kRounding_ns = kNanosecondsPerMicrosecond;

}  // namespace

ThreadScopes::ThreadScopes(const TraceSurvey& survey, const TraceNames& names, ModulePaths& modules, ScopeTree& tree,
                           ScopeSums& sums, std::size_t threads)
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

bool ThreadScopes::is_anyone_inside() const {
  return std::any_of(inside_.begin(), inside_.end(),
                     [&](std::uint32_t thread) { return !threads_[thread].stack.empty(); });
}

std::uint32_t ThreadScopes::phase_in(std::uint32_t outside, bool trains, std::uint32_t phase_text) {
  // Cache of the last result. Not used once the tree has refused a scope, because each refusal is counted.
  if (last_phase_.scope != 0 && last_phase_.outside == outside && last_phase_.trains == trains &&
      last_phase_.text == phase_text) {
    return last_phase_.scope;
  }
  const std::uint32_t mode = tree_.child(outside, ScopeKind::mode, trains ? texts_.train : texts_.inference);
  const std::uint32_t phase = tree_.child(mode, ScopeKind::phase, phase_text);
  if (tree_.refused() == 0) last_phase_ = {outside, phase_text, phase, trains};
  return phase;
}

// The loss phase ends when a backward pass begins on any thread.
std::uint32_t ThreadScopes::place_between(const Thread& thread, const Context& context) {
  if (thread.between == Between::nothing) return 0;
  const bool is_input = thread.between == Between::input;
  const std::uint32_t after_forward = backwards_ > thread.backwards_before ? texts_.gradients : texts_.loss;
  return phase_in(context.container, true, is_input ? texts_.input : after_forward);
}

std::uint32_t ThreadScopes::place_in_between(const Thread& thread) {
  const Context& context = thread.stack.back().context;
  const std::uint32_t between = place_between(thread, context);
  if (between == 0) return context.scope;
  return context.function == 0 ? between : tree_.child(between, ScopeKind::function, context.function - 1);
}

// The next two functions run for every event.
inline std::uint32_t ThreadScopes::scope_of_time(const Thread& thread) {
  const Context& context = thread.stack.back().context;
  const bool is_known = thread.between == Between::nothing || context.phase != 0 || context.in_op;
  return is_known ? context.scope : place_in_between(thread);
}

inline void ThreadScopes::spend(Thread& thread, std::int64_t until_ns) {
  if (until_ns <= thread.last_ns) return;
  if (!thread.stack.empty()) {
    if (const std::uint32_t scope = scope_of_time(thread)) sums_.add_time(scope, until_ns - thread.last_ns);
  }
  thread.last_ns = until_ns;
}

void ThreadScopes::leave_until(Thread& thread, std::int64_t time_ns) {
  while (!thread.stack.empty() && thread.stack.back().end_ns <= time_ns) {
    const Frame& frame = thread.stack.back();
    spend(thread, frame.end_ns);
    if (frame.then != Between::nothing) {
      thread.between = frame.then;
      thread.backwards_before = backwards_;
      sums_.count(place_between(thread, Context{}));
    } else if (frame.ends_between) {
      thread.between = Between::nothing;
    }
    thread.stack.pop_back();
  }
  spend(thread, time_ns);
}

void ThreadScopes::pass_time(std::int64_t until_ns) {
  std::erase_if(inside_, [&](std::uint32_t number) {
    Thread& thread = threads_[number];
    leave_until(thread, until_ns);
    thread.is_listed = !thread.stack.empty();
    return !thread.is_listed;
  });
}

// Makes the open frames enclose the event. Returns true if the event was cut. An annotation overlaps the functions
// that begin and end it, which is not damage. Neither is overlapping the end of a frame that was cut.
bool ThreadScopes::make_room(Thread& thread, const TraceEvent& event, std::int64_t& end_ns) {
  while (!thread.stack.empty() && end_ns > thread.stack.back().end_ns) {
    Frame& outer = thread.stack.back();
    const std::int64_t overhang_ns = end_ns - outer.end_ns;
    const bool is_begun_by_it = event.kind == EventKind::annotation && outer.kind == EventKind::function;
    const bool ends_it = event.kind == EventKind::function && outer.kind == EventKind::annotation;
    if (overhang_ns > kRounding_ns && !is_begun_by_it && !ends_it && !outer.is_cut) ++cut_;
    const bool is_within = overhang_ns <= kRounding_ns || overhang_ns < outer.end_ns - event.start_ns;
    if (ends_it || (is_within && !is_begun_by_it)) {
      end_ns = outer.end_ns;
      return true;
    }
    outer.end_ns = event.start_ns;
    leave_until(thread, event.start_ns);
  }
  return false;
}

void ThreadScopes::add(TraceEvent& event) {
  Thread& thread = threads_[event.track];
  if (thread.stack.empty()) thread.last_ns = std::max(thread.last_ns, event.start_ns);
  leave_until(thread, event.start_ns);
  if (event.kind == EventKind::api) {
    event.detail = thread.stack.empty() ? 0 : scope_of_time(thread);
    return;
  }
  std::int64_t end_ns = end_of(event);
  const bool is_cut = make_room(thread, event, end_ns);
  Frame& frame = thread.stack.emplace_back();
  if (thread.stack.size() > 1) frame.context = thread.stack.end()[-2].context;
  frame.kind = event.kind;
  frame.begin_ns = event.start_ns;
  frame.end_ns = end_ns;
  frame.is_cut = is_cut;
  if (enter(thread, event, frame)) {
    if (!thread.is_listed) inside_.push_back(event.track);
    thread.is_listed = true;
    event.detail = scope_of_time(thread);
  } else {
    thread.stack.pop_back();
  }
}

// Returns false if the event does not change the scope of its thread.
bool ThreadScopes::enter(Thread& thread, const TraceEvent& event, Frame& frame) {
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

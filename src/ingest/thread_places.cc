// SPDX-License-Identifier: Apache-2.0
#include "ingest/thread_places.h"

#include <algorithm>

#include "base/clock.h"

namespace joulemap::ingest {
namespace {

// Times of old traces are rounded to microseconds: what sticks out by less is within.
constexpr std::int64_t kRounding_ns = kNanosecondsPerMicrosecond;
// Deeper than people annotate: every row of a report tells all regions around it.
constexpr std::uint32_t kDeepestRegion = 64;

}  // namespace

ThreadPlaces::ThreadPlaces(const TraceSurvey& survey, const TraceNames& names, ModulePaths& modules, PlaceTree& tree,
                           PlaceSums& sums, std::size_t threads)
    : survey_(survey),
      names_(names),
      modules_(modules),
      tree_(tree),
      sums_(sums),
      threads_(threads),
      texts_{tree.text("train"),      tree.text("inference"), tree.text("forward"),   tree.text("backward"),
             tree.text("recompute"),  tree.text("loss"),      tree.text("optimizer"), tree.text("zero_grad"),
             tree.text("dataloader"), tree.text("input"),     tree.text("gradients"), tree.text("comm")} {}

bool ThreadPlaces::is_anyone_inside() const {
  return std::any_of(inside_.begin(), inside_.end(),
                     [&](std::uint32_t thread) { return !threads_[thread].stack.empty(); });
}

std::uint32_t ThreadPlaces::phase_in(std::uint32_t outside, bool trains, std::uint32_t phase_text) {
  // Mostly the same is asked again; but a place that was refused is counted each time.
  if (last_phase_.place != 0 && last_phase_.outside == outside && last_phase_.trains == trains &&
      last_phase_.text == phase_text) {
    return last_phase_.place;
  }
  const std::uint32_t mode = tree_.child(outside, PlaceKind::mode, trains ? texts_.train : texts_.inference);
  const std::uint32_t phase = tree_.child(mode, PlaceKind::phase, phase_text);
  if (tree_.refused() == 0) last_phase_ = {outside, phase_text, phase, trains};
  return phase;
}

// The loss ends where a backward pass, on whichever thread, begins.
std::uint32_t ThreadPlaces::place_between(const Thread& thread, const Context& context) {
  if (thread.between == Between::nothing) return 0;
  const bool is_input = thread.between == Between::input;
  const std::uint32_t after_forward = backwards_ > thread.backwards_before ? texts_.gradients : texts_.loss;
  return phase_in(context.container, true, is_input ? texts_.input : after_forward);
}

std::uint32_t ThreadPlaces::place_of_time(const Thread& thread) {
  const Context& context = thread.stack.back().context;
  if (context.phase != 0 || context.in_op) return context.place;
  const std::uint32_t between = place_between(thread, context);
  if (between == 0) return context.place;
  return context.function == 0 ? between : tree_.child(between, PlaceKind::function, context.function - 1);
}

void ThreadPlaces::spend(Thread& thread, std::int64_t until_ns) {
  if (until_ns <= thread.last_ns) return;
  if (!thread.stack.empty()) {
    if (const std::uint32_t place = place_of_time(thread)) sums_.add_time(place, until_ns - thread.last_ns);
  }
  thread.last_ns = until_ns;
}

void ThreadPlaces::leave_until(Thread& thread, std::int64_t time_ns) {
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

void ThreadPlaces::pass_time(std::int64_t until_ns) {
  std::erase_if(inside_, [&](std::uint32_t number) {
    Thread& thread = threads_[number];
    leave_until(thread, until_ns);
    thread.is_listed = !thread.stack.empty();
    return !thread.is_listed;
  });
}

// What is open must enclose what begins. True when it was cut. An annotation is begun and ended by functions that overlap
// it, which is no damage; nor is what sticks out of one that was cut.
bool ThreadPlaces::make_room(Thread& thread, const TraceEvent& event, std::int64_t& end_ns) {
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

void ThreadPlaces::add(TraceEvent& event) {
  Thread& thread = threads_[event.track];
  if (thread.stack.empty()) thread.last_ns = std::max(thread.last_ns, event.start_ns);
  leave_until(thread, event.start_ns);
  if (event.kind == EventKind::api) {
    event.detail = thread.stack.empty() ? 0 : place_of_time(thread);
    return;
  }
  Frame frame;
  frame.kind = event.kind;
  frame.begin_ns = event.start_ns;
  frame.end_ns = end_of(event);
  frame.is_cut = make_room(thread, event, frame.end_ns);
  if (!thread.stack.empty()) frame.context = thread.stack.back().context;
  enter(thread, event, frame);
}

void ThreadPlaces::enter(Thread& thread, TraceEvent& event, Frame& frame) {
  switch (event.kind) {
    case EventKind::annotation:
      if (!enter_annotation(event, frame)) return;
      break;
    case EventKind::module:
      enter_module(event, frame);
      break;
    case EventKind::function:
      enter_function(event, frame);
      break;
    default:
      enter_op(thread, event, frame);
      break;
  }
  thread.stack.push_back(frame);
  if (!thread.is_listed) inside_.push_back(event.track);
  thread.is_listed = true;
  event.detail = place_of_time(thread);
}

void ThreadPlaces::enter_phase(Frame& frame, std::uint32_t phase, std::uint32_t place) {
  Context& context = frame.context;
  context.phase = phase;
  context.place = context.container = place;
  context.function = 0;
  context.in_op = context.in_backward = context.in_communication = false;
  frame.ends_between = true;
  sums_.count(place);
}

// False for what says nothing of where a thread is.
bool ThreadPlaces::enter_annotation(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  const NameMeaning& name = names_[event.name];
  const bool trains = survey_.trains_at(event.start_ns);
  switch (name.role) {
    case NameRole::step:
      ++passes_;
      return true;
    case NameRole::unspoken:
      return false;
    case NameRole::optimizer: {
      ++passes_;
      const std::uint32_t phase = phase_in(context.outside, true, texts_.optimizer);
      enter_phase(frame, phase, tree_.child(phase, PlaceKind::module, name.text));
      return true;
    }
    case NameRole::zero_grad: {
      const std::uint32_t phase = phase_in(context.outside, true, texts_.zero_grad);
      enter_phase(frame, phase, phase);
      return true;
    }
    case NameRole::dataloader: {
      const std::uint32_t phase = phase_in(context.outside, trains, texts_.dataloader);
      enter_phase(frame, phase, phase);
      if (trains && survey_.has_modules()) frame.then = Between::input;
      return true;
    }
    case NameRole::communication:
      enter_communication(event, frame);
      return true;
    default:
      break;
  }
  if (context.in_op) return false;
  if (context.regions >= kDeepestRegion) {
    ++too_deep_;
    return false;
  }
  ++context.regions;
  context.place = context.container = tree_.child(context.container, PlaceKind::region, name.text);
  if (context.phase == 0) context.outside = context.place;
  context.function = 0;
  sums_.count(context.place);
  return true;
}

void ThreadPlaces::enter_module(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  const bool is_outermost = context.node == 0;
  const bool recomputes = context.in_backward;
  if (is_outermost || recomputes) {
    const bool keeps_graph = event.detail != 0 || !survey_.has_sequence_numbers();
    const bool trains = recomputes || (survey_.trains_at(event.start_ns) && keeps_graph);
    const bool is_loss = modules_.is_loss(event.name);
    context.phase = phase_in(context.outside, trains,
                             recomputes ? texts_.recompute
                             : is_loss  ? texts_.loss
                                        : texts_.forward);
    if (!recomputes) {
      ++passes_;
      frame.ends_between = true;
      if (trains) frame.then = Between::loss;
    }
  }
  context.in_op = context.in_backward = context.in_communication = false;
  context.function = 0;
  context.call = ++calls_;
  // A layer that is computed again is the same as in the forward pass, and so are those around it.
  if (!modules_.is_wrapper(event.name)) context.node = modules_.within(context.node, event.name);
  context.place = context.container = modules_.place(context.node, context.phase);
  sums_.count(context.place);
}

void ThreadPlaces::enter_function(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  if (context.in_op) return;
  const std::uint32_t text = names_[event.name].text;
  if (names_[event.name].role == NameRole::backward && context.node == 0) {
    context.phase = context.container = phase_in(context.outside, true, texts_.backward);
  }
  context.place = tree_.child(context.container, PlaceKind::function, text);
  if (context.phase == 0) context.function = text + 1;
  sums_.count(context.place);
}

void ThreadPlaces::enter_communication(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  // The collective's own name says more than those around it.
  if (context.in_communication && event.kind != EventKind::annotation) return;
  const std::uint32_t within = context.phase != 0 ? context.phase : context.outside;
  const std::uint32_t module = tree_.child(within, PlaceKind::module, texts_.comm);
  context.place = names_.op_in(module, event.name);
  context.in_op = context.in_communication = true;
  sums_.count(context.place);
}

void ThreadPlaces::enter_told_place(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  context.place = names_.place(event.name, context.outside, context.phase);
  context.in_op = true;
  sums_.count(context.place);
}

// Where operations are that no module encloses.
std::uint32_t ThreadPlaces::phase_of_op(Thread& thread, const TraceEvent& event, const Context& context) {
  if (const std::uint32_t between = place_between(thread, context)) return between;
  if (survey_.has_modules()) return context.container;
  const std::uint32_t phase = phase_in(context.container, survey_.trains_at(event.start_ns), texts_.forward);
  if (thread.run_phase != phase || thread.run_pass != passes_) {
    thread.run_phase = phase;
    thread.run_pass = passes_;
    sums_.count(phase);
  }
  return phase;
}

void ThreadPlaces::enter_op(Thread& thread, const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  const NameMeaning& name = names_[event.name];
  if (name.has_place) return enter_told_place(event, frame);
  const bool runs_node = name.role == NameRole::engine || name.role == NameRole::gradient || event.is_backward;
  const bool is_nested_node = context.in_op && context.in_backward && name.role != NameRole::engine;
  if (runs_node && !is_nested_node) return enter_backward(thread, event, frame);
  if (event.detail > 0 && !event.is_backward && !(context.in_backward && context.in_op)) {
    // Of operations with the same number the last one made the node.
    forward_.insert_or_assign(event.detail, Forward{context.node, context.call});
  }
  if (name.role == NameRole::communication) return enter_communication(event, frame);
  if (context.in_op) return tell_tensors(thread, event, frame);
  const std::uint32_t container = context.phase != 0 ? context.container : phase_of_op(thread, event, context);
  context.place = names_.op_in(container, event.name);
  context.in_op = true;
  sums_.count(context.place);
}

// The engine does not tell what the node that it runs is given; the node within it does. Both are one operation.
void ThreadPlaces::tell_tensors(Thread& thread, const TraceEvent& event, Frame& frame) {
  const NameMeaning& name = names_[event.name];
  if (thread.stack.empty() || name.tensors == 0 || frame.context.node_text != name.text + 1) return;
  Frame& engine = thread.stack.back();
  const std::uint32_t place = tree_.child(engine.context.place, PlaceKind::tensors, name.tensors - 1);
  sums_.move(engine.context.place, place, event.start_ns - engine.begin_ns);
  for (Context* const context : {&engine.context, &frame.context}) {
    context->place = place;
    context->node_text = 0;
  }
}

void ThreadPlaces::enter_backward(Thread& thread, const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  const std::uint32_t phase = phase_in(context.outside, true, texts_.backward);
  const bool is_new_pass = thread.pass != passes_;
  if (is_new_pass) {
    thread.pass = passes_;
    ++backwards_;
    sums_.count(phase);
    if (survey_.has_modules()) sums_.count(phase_in(context.outside, true, texts_.gradients));
  }
  const auto forward = event.detail > 0 ? forward_.find(event.detail) : forward_.end();
  // Gradients are added up right after the node that made them.
  const bool is_gradient = names_[event.name].role == NameRole::gradient;
  if (forward == forward_.end() && !is_gradient) ++backward_without_forward_;
  Forward at{thread.last_node, thread.last_call};
  if (forward != forward_.end()) {
    at = forward->second;
  } else if (!is_gradient) {
    at = {};
  }
  const std::uint32_t container = modules_.place(at.node, phase);
  if (at.node != 0 && (is_new_pass || at.call != thread.last_call)) sums_.count(container);
  thread.last_node = at.node;
  thread.last_call = at.call;
  context.phase = phase;
  context.node = at.node;
  context.call = at.call;
  context.container = container;
  context.place = names_.op_in(container, event.name);
  context.node_text = names_[event.name].tensors == 0 ? names_[event.name].text + 1 : 0;
  context.function = 0;
  context.in_op = context.in_backward = true;
  context.in_communication = false;
  sums_.count(context.place);
}

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// ThreadScopes::enter_*: how each kind of event changes the scope of its thread.
#include "ingest/placing/thread_scopes.h"

namespace joulemap::ingest {
namespace {

// Deeper than people annotate: every row of a report contains all enclosing regions.
constexpr std::uint32_t kDeepestRegion = 64;

}  // namespace

// A name mostly recurs in the container where it was last seen. Refused scopes are not cached: refusals are counted.
template <class Find>
std::uint32_t ThreadScopes::known_scope(const TraceEvent& event, std::uint32_t container, const Find& find) {
  if (event.name >= last_scopes_.size()) return find();
  KnownScope& known = last_scopes_[event.name];
  if (known.scope != 0 && known.container == container && known.kind == event.kind) return known.scope;
  const std::uint32_t scope = find();
  if (tree_.refused() == 0) known = {container, scope, event.kind};
  return scope;
}

std::uint32_t ThreadScopes::op_in(std::uint32_t container, const TraceEvent& event) {
  return known_scope(event, container, [&] { return names_.op_in(container, event.name); });
}

void ThreadScopes::enter_phase(Frame& frame, std::uint32_t phase, std::uint32_t scope) {
  Context& context = frame.context;
  context.phase = phase;
  context.scope = context.container = scope;
  context.function = 0;
  context.in_op = context.in_backward = context.in_communication = false;
  frame.ends_between = true;
  sums_.count(scope);
}

// Returns false if the annotation does not change the scope of its thread.
bool ThreadScopes::enter_annotation(const TraceEvent& event, Frame& frame) {
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
      enter_phase(frame, phase, tree_.child(phase, ScopeKind::module, name.text));
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
  context.scope = context.container = tree_.child(context.container, ScopeKind::region, name.text);
  if (context.phase == 0) context.outside = context.scope;
  context.function = 0;
  sums_.count(context.scope);
  return true;
}

void ThreadScopes::enter_module(const TraceEvent& event, Frame& frame) {
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
  // A recomputed layer is the same layer as in the forward pass, and so are those around it.
  if (!modules_.is_wrapper(event.name)) context.node = modules_.within(context.node, event.name);
  context.scope = context.container = modules_.scope(context.node, context.phase);
  sums_.count(context.scope);
}

void ThreadScopes::enter_function(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  if (context.in_op) return;
  const std::uint32_t text = names_[event.name].text;
  if (names_[event.name].role == NameRole::backward && context.node == 0) {
    context.phase = context.container = phase_in(context.outside, true, texts_.backward);
  }
  context.scope =
      known_scope(event, context.container, [&] { return tree_.child(context.container, ScopeKind::function, text); });
  if (context.phase == 0) context.function = text + 1;
  sums_.count(context.scope);
}

void ThreadScopes::enter_communication(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  // The collective's own name is more specific than those around it.
  if (context.in_communication && event.kind != EventKind::annotation) return;
  const std::uint32_t within = context.phase != 0 ? context.phase : context.outside;
  const std::uint32_t module = tree_.child(within, ScopeKind::module, texts_.comm);
  context.scope = names_.op_in(module, event.name);
  context.in_op = context.in_communication = true;
  sums_.count(context.scope);
}

void ThreadScopes::enter_reported_scope(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  context.scope = names_.scope(event.name, context.outside, context.phase);
  context.in_op = true;
  sums_.count(context.scope);
}

// Returns the scope for operations that no module encloses.
std::uint32_t ThreadScopes::phase_of_op(Thread& thread, const TraceEvent& event, const Context& context) {
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

void ThreadScopes::enter_op(Thread& thread, const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  const NameMeaning& name = names_[event.name];
  if (name.has_scope) return enter_reported_scope(event, frame);
  const bool runs_node = name.role == NameRole::engine || name.role == NameRole::gradient || event.is_backward;
  const bool is_nested_node = context.in_op && context.in_backward && name.role != NameRole::engine;
  if (runs_node && !is_nested_node) return enter_backward(thread, event, frame);
  if (event.detail > 0 && !event.is_backward && !(context.in_backward && context.in_op)) {
    // Of operations with the same sequence number, the last one created the node.
    forward_.insert_or_assign(event.detail, Forward{context.node, context.call});
  }
  if (name.role == NameRole::communication) return enter_communication(event, frame);
  if (context.in_op) return tell_tensors(thread, event, frame);
  const std::uint32_t container = context.phase != 0 ? context.container : phase_of_op(thread, event, context);
  context.scope = op_in(container, event);
  context.in_op = true;
  sums_.count(context.scope);
}

// The engine's event lacks the inputs of its node; the nested event of the node has them. Both are one operation.
void ThreadScopes::tell_tensors(Thread& thread, const TraceEvent& event, Frame& frame) {
  const NameMeaning& name = names_[event.name];
  if (thread.stack.size() < 2 || name.tensors == 0 || frame.context.node_text != name.text + 1) return;
  Frame& engine = thread.stack.end()[-2];
  const std::uint32_t scope = tree_.child(engine.context.scope, ScopeKind::tensors, name.tensors - 1);
  sums_.move(engine.context.scope, scope, event.start_ns - engine.begin_ns);
  for (Context* const context : {&engine.context, &frame.context}) {
    context->scope = scope;
    context->node_text = 0;
  }
}

void ThreadScopes::enter_backward(Thread& thread, const TraceEvent& event, Frame& frame) {
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
  // Gradients are accumulated right after the node that produced them.
  const bool is_gradient = names_[event.name].role == NameRole::gradient;
  if (forward == forward_.end() && !is_gradient) ++backward_without_forward_;
  Forward at{thread.last_node, thread.last_call};
  if (forward != forward_.end()) {
    at = forward->second;
  } else if (!is_gradient) {
    at = {};
  }
  const std::uint32_t container = modules_.scope(at.node, phase);
  if (at.node != 0 && (is_new_pass || at.call != thread.last_call)) sums_.count(container);
  thread.last_node = at.node;
  thread.last_call = at.call;
  context.phase = phase;
  context.node = at.node;
  context.call = at.call;
  context.container = container;
  context.scope = op_in(container, event);
  context.node_text = names_[event.name].tensors == 0 ? names_[event.name].text + 1 : 0;
  context.function = 0;
  context.in_op = context.in_backward = true;
  context.in_communication = false;
  sums_.count(context.scope);
}

}  // namespace joulemap::ingest

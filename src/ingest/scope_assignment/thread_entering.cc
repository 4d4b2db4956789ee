// SPDX-License-Identifier: Apache-2.0
//
// ThreadScopeTracker::enter_*: how each kind of event changes the scope of its thread.
#include "ingest/scope_assignment/thread_scope_tracker.h"

namespace joulemap::ingest {
namespace {

// Deeper than people annotate: every row of a report contains all enclosing regions.
constexpr std::uint32_t kMaxRegionDepth = 64;

}  // namespace

// A name mostly recurs in the container where it was last seen. Refused scopes are not cached: refusals are counted.
template <class Find>
std::uint32_t ThreadScopeTracker::cached_scope(const TraceEvent& event, std::uint32_t container, const Find& find) {
  if (event.name >= last_scopes_.size()) return find();
  CachedScope& known = last_scopes_[event.name];
  if (known.scope != 0 && known.container == container && known.kind == event.kind) return known.scope;
  const std::uint32_t scope = find();
  if (tree_.refused_count() == 0) known = {container, scope, event.kind};
  return scope;
}

std::uint32_t ThreadScopeTracker::op_scope(std::uint32_t container, const TraceEvent& event) {
  return cached_scope(event, container, [&] { return names_.op_scope(container, event.name); });
}

void ThreadScopeTracker::enter_phase(Frame& frame, std::uint32_t phase, std::uint32_t scope) {
  Context& context = frame.context;
  context.phase = phase;
  context.scope = context.container = scope;
  context.function = 0;
  context.in_op = context.in_backward = context.in_communication = false;
  frame.ends_gap = true;
  sums_.count(scope);
}

// Returns false if the annotation does not change the scope of its thread.
bool ThreadScopeTracker::enter_annotation(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  const NameMeaning& name = names_[event.name];
  const bool is_training = survey_.is_training_at(event.start_ns);
  switch (name.role) {
    case NameRole::step:
      ++pass_count_;
      return true;
    case NameRole::redundant:
      return false;
    case NameRole::optimizer: {
      ++pass_count_;
      const std::uint32_t phase = phase_scope(context.enclosing_region, true, texts_.optimizer);
      enter_phase(frame, phase, tree_.child(phase, ScopeKind::module, name.text));
      return true;
    }
    case NameRole::zero_grad: {
      const std::uint32_t phase = phase_scope(context.enclosing_region, true, texts_.zero_grad);
      enter_phase(frame, phase, phase);
      return true;
    }
    case NameRole::dataloader: {
      const std::uint32_t phase = phase_scope(context.enclosing_region, is_training, texts_.dataloader);
      enter_phase(frame, phase, phase);
      if (is_training && survey_.has_modules()) frame.gap_after = GapPhase::input;
      return true;
    }
    case NameRole::communication:
      enter_communication(event, frame);
      return true;
    default:
      break;
  }
  if (context.in_op) return false;
  if (context.region_depth >= kMaxRegionDepth) {
    ++regions_too_deep_;
    return false;
  }
  ++context.region_depth;
  context.scope = context.container = tree_.child(context.container, ScopeKind::region, name.text);
  if (context.phase == 0) context.enclosing_region = context.scope;
  context.function = 0;
  sums_.count(context.scope);
  return true;
}

void ThreadScopeTracker::enter_module(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  const bool is_outermost = context.layer == 0;
  const bool recomputes = context.in_backward;
  if (is_outermost || recomputes) {
    const bool keeps_graph = event.detail != 0 || !survey_.has_sequence_numbers();
    const bool is_training = recomputes || (survey_.is_training_at(event.start_ns) && keeps_graph);
    const bool is_loss = modules_.is_loss(event.name);
    context.phase = phase_scope(context.enclosing_region, is_training,
                                recomputes ? texts_.recompute
                                : is_loss  ? texts_.loss
                                           : texts_.forward);
    if (!recomputes) {
      ++pass_count_;
      frame.ends_gap = true;
      if (is_training) frame.gap_after = GapPhase::loss;
    }
  }
  context.in_op = context.in_backward = context.in_communication = false;
  context.function = 0;
  context.module_call = ++module_call_count_;
  // A recomputed layer is the same layer as in the forward pass, and so are those around it.
  if (!modules_.is_wrapper(event.name)) context.layer = modules_.find_layer(context.layer, event.name);
  context.scope = context.container = modules_.scope(context.layer, context.phase);
  sums_.count(context.scope);
}

void ThreadScopeTracker::enter_function(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  if (context.in_op) return;
  const std::uint32_t text = names_[event.name].text;
  if (names_[event.name].role == NameRole::backward && context.layer == 0) {
    context.phase = context.container = phase_scope(context.enclosing_region, true, texts_.backward);
  }
  context.scope =
      cached_scope(event, context.container, [&] { return tree_.child(context.container, ScopeKind::function, text); });
  if (context.phase == 0) context.function = text + 1;
  sums_.count(context.scope);
}

void ThreadScopeTracker::enter_communication(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  // The collective's own name is more specific than those around it.
  if (context.in_communication && event.kind != EventKind::annotation) return;
  const std::uint32_t within = context.phase != 0 ? context.phase : context.enclosing_region;
  const std::uint32_t module = tree_.child(within, ScopeKind::module, texts_.comm);
  context.scope = names_.op_scope(module, event.name);
  context.in_op = context.in_communication = true;
  sums_.count(context.scope);
}

void ThreadScopeTracker::enter_reported_scope(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  context.scope = names_.scope(event.name, context.enclosing_region, context.phase);
  context.in_op = true;
  sums_.count(context.scope);
}

// Returns the scope for operations that no module encloses.
std::uint32_t ThreadScopeTracker::phase_of_op(Thread& thread, const TraceEvent& event, const Context& context) {
  if (const std::uint32_t between = gap_scope(thread, context)) return between;
  if (survey_.has_modules()) return context.container;
  const std::uint32_t phase = phase_scope(context.container, survey_.is_training_at(event.start_ns), texts_.forward);
  if (thread.outer_op_phase != phase || thread.outer_op_pass != pass_count_) {
    thread.outer_op_phase = phase;
    thread.outer_op_pass = pass_count_;
    sums_.count(phase);
  }
  return phase;
}

void ThreadScopeTracker::enter_op(Thread& thread, const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  const NameMeaning& name = names_[event.name];
  if (name.has_scope) return enter_reported_scope(event, frame);
  const bool runs_node =
      name.role == NameRole::autograd_engine || name.role == NameRole::gradient_accumulation || event.is_backward;
  const bool is_nested_node = context.in_op && context.in_backward && name.role != NameRole::autograd_engine;
  if (runs_node && !is_nested_node) return enter_backward(thread, event, frame);
  if (event.detail > 0 && !event.is_backward && !(context.in_backward && context.in_op)) {
    // Of operations with the same sequence number, the last one created the node.
    forward_calls_.insert_or_assign(event.detail, ForwardCall{context.layer, context.module_call});
  }
  if (name.role == NameRole::communication) return enter_communication(event, frame);
  if (context.in_op) return add_tensors_to_engine_op(thread, event, frame);
  const std::uint32_t container = context.phase != 0 ? context.container : phase_of_op(thread, event, context);
  context.scope = op_scope(container, event);
  context.in_op = true;
  sums_.count(context.scope);
}

// The engine's event lacks the inputs of its node; the nested event of the node has them. Both are one operation.
void ThreadScopeTracker::add_tensors_to_engine_op(Thread& thread, const TraceEvent& event, Frame& frame) {
  const NameMeaning& name = names_[event.name];
  if (thread.stack.size() < 2 || name.tensors == 0 || frame.context.autograd_node_text != name.text + 1) return;
  Frame& engine = thread.stack.end()[-2];
  const std::uint32_t scope = tree_.child(engine.context.scope, ScopeKind::tensors, name.tensors - 1);
  sums_.move_call(engine.context.scope, scope, event.start_ns - engine.begin_ns);
  for (Context* const context : {&engine.context, &frame.context}) {
    context->scope = scope;
    context->autograd_node_text = 0;
  }
}

void ThreadScopeTracker::enter_backward(Thread& thread, const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  const std::uint32_t phase = phase_scope(context.enclosing_region, true, texts_.backward);
  const bool is_new_pass = thread.last_backward_pass != pass_count_;
  if (is_new_pass) {
    thread.last_backward_pass = pass_count_;
    ++backward_pass_count_;
    sums_.count(phase);
    if (survey_.has_modules()) sums_.count(phase_scope(context.enclosing_region, true, texts_.gradients));
  }
  const auto forward = event.detail > 0 ? forward_calls_.find(event.detail) : forward_calls_.end();
  // Gradients are accumulated right after the node that produced them.
  const bool is_gradient = names_[event.name].role == NameRole::gradient_accumulation;
  if (forward == forward_calls_.end() && !is_gradient) ++backward_ops_without_forward_;
  ForwardCall at{thread.last_backward_layer, thread.last_backward_call};
  if (forward != forward_calls_.end()) {
    at = forward->second;
  } else if (!is_gradient) {
    at = {};
  }
  const std::uint32_t container = modules_.scope(at.layer, phase);
  if (at.layer != 0 && (is_new_pass || at.module_call != thread.last_backward_call)) sums_.count(container);
  thread.last_backward_layer = at.layer;
  thread.last_backward_call = at.module_call;
  context.phase = phase;
  context.layer = at.layer;
  context.module_call = at.module_call;
  context.container = container;
  context.scope = op_scope(container, event);
  context.autograd_node_text = names_[event.name].tensors == 0 ? names_[event.name].text + 1 : 0;
  context.function = 0;
  context.in_op = context.in_backward = true;
  context.in_communication = false;
  sums_.count(context.scope);
}

}  // namespace joulemap::ingest

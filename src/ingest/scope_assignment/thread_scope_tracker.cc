// SPDX-License-Identifier: Apache-2.0
#include "ingest/scope_assignment/thread_scope_tracker.h"

#include <algorithm>

#include "base/clock.h"

namespace joulemap::ingest {
namespace {

// Old traces round times to microseconds: an event that exceeds the end of another by at most this is inside it.
constexpr std::int64_t kTimestampRounding_ns = kNanosecondsPerMicrosecond;

}  // namespace

ThreadScopeTracker::ThreadScopeTracker(const TraceSurvey& survey, const TraceNames& names, ModulePaths& modules,
                                       ScopeInterner& scope_interner, ScopeTimeSums& sums, std::size_t threads)
    : trace_survey_(survey),
      trace_names_(names),
      module_paths_(modules),
      scope_interner_(scope_interner),
      scope_time_sums_(sums),
      threads_(threads),
      last_scopes_(names.size()),
      phase_texts_{scope_interner.intern_text("train"),      scope_interner.intern_text("inference"),
                   scope_interner.intern_text("forward"),    scope_interner.intern_text("backward"),
                   scope_interner.intern_text("recompute"),  scope_interner.intern_text("loss"),
                   scope_interner.intern_text("optimizer"),  scope_interner.intern_text("zero_grad"),
                   scope_interner.intern_text("dataloader"), scope_interner.intern_text("input"),
                   scope_interner.intern_text("gradients"),  scope_interner.intern_text("comm")} {}

bool ThreadScopeTracker::has_open_scopes() const {
  return std::any_of(active_threads_.begin(), active_threads_.end(),
                     [&](std::uint32_t thread) { return !threads_[thread].stack.empty(); });
}

std::uint32_t ThreadScopeTracker::phase_scope(std::uint32_t enclosing_region, bool is_training,
                                              std::uint32_t phase_text) {
  // Cache of the last result. Not updated once the tree has refused a scope, because each refusal is counted.
  if (last_phase_.scope != 0 && last_phase_.enclosing_region == enclosing_region &&
      last_phase_.is_training == is_training && last_phase_.text == phase_text) {
    return last_phase_.scope;
  }
  const std::uint32_t mode = scope_interner_.find_or_add_child_scope(
      enclosing_region, ScopeKind::mode, is_training ? phase_texts_.train : phase_texts_.inference);
  const std::uint32_t phase = scope_interner_.find_or_add_child_scope(mode, ScopeKind::phase, phase_text);
  if (scope_interner_.refused_scope_count() == 0) last_phase_ = {enclosing_region, phase_text, phase, is_training};
  return phase;
}

// The loss phase ends when a backward pass begins on any thread.
std::uint32_t ThreadScopeTracker::gap_phase_scope(const Thread& thread, const Context& context) {
  if (thread.gap_phase == GapPhase::none) return 0;
  const bool is_input = thread.gap_phase == GapPhase::input;
  const std::uint32_t phase_after_forward =
      backward_pass_count_ > thread.backward_passes_before_gap ? phase_texts_.gradients : phase_texts_.loss;
  return phase_scope(context.parent_scope, true, is_input ? phase_texts_.input : phase_after_forward);
}

std::uint32_t ThreadScopeTracker::gap_phase_or_function_scope(const Thread& thread) {
  const Context& context = thread.stack.back().context;
  const std::uint32_t gap_scope = gap_phase_scope(thread, context);
  if (gap_scope == 0) return context.scope;
  return context.function == 0
             ? gap_scope
             : scope_interner_.find_or_add_child_scope(gap_scope, ScopeKind::function, context.function - 1);
}

// current_scope() and add_time_until() are inline, because they run for every event.
inline std::uint32_t ThreadScopeTracker::current_scope(const Thread& thread) {
  const Context& context = thread.stack.back().context;
  const bool is_known = thread.gap_phase == GapPhase::none || context.phase != 0 || context.is_in_op;
  return is_known ? context.scope : gap_phase_or_function_scope(thread);
}

inline void ThreadScopeTracker::add_time_until(Thread& thread, std::int64_t until_ns) {
  if (until_ns <= thread.attributed_until_ns) return;
  if (!thread.stack.empty()) {
    if (const std::uint32_t scope = current_scope(thread))
      scope_time_sums_.add_time(scope, until_ns - thread.attributed_until_ns);
  }
  thread.attributed_until_ns = until_ns;
}

void ThreadScopeTracker::pop_frames_until(Thread& thread, std::int64_t time_ns) {
  while (!thread.stack.empty() && thread.stack.back().end_ns <= time_ns) {
    const Frame& frame = thread.stack.back();
    add_time_until(thread, frame.end_ns);
    if (frame.gap_phase_after != GapPhase::none) {
      thread.gap_phase = frame.gap_phase_after;
      thread.backward_passes_before_gap = backward_pass_count_;
      scope_time_sums_.count_call(gap_phase_scope(thread, Context{}));
    } else if (frame.ends_gap_phase) {
      thread.gap_phase = GapPhase::none;
    }
    thread.stack.pop_back();
  }
  add_time_until(thread, time_ns);
}

void ThreadScopeTracker::advance_time_to(std::int64_t until_ns) {
  std::erase_if(active_threads_, [&](std::uint32_t number) {
    Thread& thread = threads_[number];
    pop_frames_until(thread, until_ns);
    thread.is_in_active_list = !thread.stack.empty();
    return !thread.is_in_active_list;
  });
}

// Shortens the event, or closes open frames early, so that all frames left open enclose the event. Returns true if it
// shortened the event; then `end_ns` is the new end. Counts each overlap, with two exceptions: an annotation may
// overlap the functions that begin and end it, and an overlap with a frame that was shortened before is counted
// already.
bool ThreadScopeTracker::truncate_to_enclosing_frames(Thread& thread, const TraceEvent& event, std::int64_t& end_ns) {
  while (!thread.stack.empty() && end_ns > thread.stack.back().end_ns) {
    Frame& outer_frame = thread.stack.back();
    const std::int64_t overhang_ns = end_ns - outer_frame.end_ns;
    const bool begins_in_outer_function =
        event.kind == EventKind::annotation && outer_frame.kind == EventKind::function;
    const bool ends_outer_annotation = event.kind == EventKind::function && outer_frame.kind == EventKind::annotation;
    if (overhang_ns > kTimestampRounding_ns && !begins_in_outer_function && !ends_outer_annotation &&
        !outer_frame.is_truncated)
      ++truncated_event_count_;
    const bool is_within = overhang_ns <= kTimestampRounding_ns || overhang_ns < outer_frame.end_ns - event.start_ns;
    if (ends_outer_annotation || (is_within && !begins_in_outer_function)) {
      end_ns = outer_frame.end_ns;
      return true;
    }
    outer_frame.end_ns = event.start_ns;
    pop_frames_until(thread, event.start_ns);
  }
  return false;
}

void ThreadScopeTracker::add(TraceEvent& event) {
  Thread& thread = threads_[event.track_index];
  if (thread.stack.empty()) thread.attributed_until_ns = std::max(thread.attributed_until_ns, event.start_ns);
  pop_frames_until(thread, event.start_ns);
  if (event.kind == EventKind::api) {
    event.detail_index = thread.stack.empty() ? 0 : current_scope(thread);
    return;
  }
  std::int64_t end_ns = end_ns_of(event);
  const bool is_truncated = truncate_to_enclosing_frames(thread, event, end_ns);
  Frame& frame = thread.stack.emplace_back();
  if (thread.stack.size() > 1) frame.context = thread.stack.end()[-2].context;
  frame.kind = event.kind;
  frame.begin_ns = event.start_ns;
  frame.end_ns = end_ns;
  frame.is_truncated = is_truncated;
  if (enter_event(thread, event, frame)) {
    if (!thread.is_in_active_list) active_threads_.push_back(event.track_index);
    thread.is_in_active_list = true;
    event.detail_index = current_scope(thread);
  } else {
    thread.stack.pop_back();
  }
}

// Returns false if the event does not change the scope of its thread.
bool ThreadScopeTracker::enter_event(Thread& thread, const TraceEvent& event, Frame& frame) {
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

// ThreadScopeTracker::enter_*: how each kind of event changes the scope of its thread.

namespace {

// Limit of nested regions, deeper than people annotate: each row of a report contains the names of all enclosing
// regions.
constexpr std::uint32_t kMaxRegionDepth = 64;

}  // namespace

// Caches the last scope of each name: a name mostly recurs in the container where it was last seen. Scopes that the
// tree refused are not cached, because refusals are counted.
template <class Find>
std::uint32_t ThreadScopeTracker::cached_scope(const TraceEvent& event, std::uint32_t parent_scope, const Find& find) {
  if (event.name_index >= last_scopes_.size()) return find();
  CachedScope& cache_entry = last_scopes_[event.name_index];
  if (cache_entry.scope != 0 && cache_entry.parent_scope == parent_scope && cache_entry.kind == event.kind)
    return cache_entry.scope;
  const std::uint32_t scope = find();
  if (scope_interner_.refused_scope_count() == 0) cache_entry = {parent_scope, scope, event.kind};
  return scope;
}

std::uint32_t ThreadScopeTracker::op_scope(std::uint32_t parent_scope, const TraceEvent& event) {
  return cached_scope(event, parent_scope, [&] { return trace_names_.op_scope(parent_scope, event.name_index); });
}

void ThreadScopeTracker::enter_phase(Frame& frame, std::uint32_t phase, std::uint32_t scope) {
  Context& context = frame.context;
  context.phase = phase;
  context.scope = context.parent_scope = scope;
  context.function = 0;
  context.is_in_op = context.is_in_backward = context.is_in_communication = false;
  frame.ends_gap_phase = true;
  scope_time_sums_.count_call(scope);
}

// Returns false if the annotation does not change the scope of its thread.
bool ThreadScopeTracker::enter_annotation(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  const NameMeaning& name = trace_names_[event.name_index];
  const bool is_training = trace_survey_.is_training_at(event.start_ns);
  switch (name.role) {
    case NameRole::step:
      ++pass_boundary_count_;
      return true;
    case NameRole::redundant:
      return false;
    case NameRole::optimizer: {
      ++pass_boundary_count_;
      const std::uint32_t phase = phase_scope(context.enclosing_region, true, phase_texts_.optimizer);
      enter_phase(frame, phase, scope_interner_.find_or_add_child_scope(phase, ScopeKind::module, name.text));
      return true;
    }
    case NameRole::zero_grad: {
      const std::uint32_t phase = phase_scope(context.enclosing_region, true, phase_texts_.zero_grad);
      enter_phase(frame, phase, phase);
      return true;
    }
    case NameRole::dataloader: {
      const std::uint32_t phase = phase_scope(context.enclosing_region, is_training, phase_texts_.dataloader);
      enter_phase(frame, phase, phase);
      if (is_training && trace_survey_.has_modules()) frame.gap_phase_after = GapPhase::input;
      return true;
    }
    case NameRole::communication:
      enter_communication(event, frame);
      return true;
    default:
      break;
  }
  if (context.is_in_op) return false;
  if (context.region_depth >= kMaxRegionDepth) {
    ++too_deep_region_count_;
    return false;
  }
  ++context.region_depth;
  context.scope = context.parent_scope =
      scope_interner_.find_or_add_child_scope(context.parent_scope, ScopeKind::region, name.text);
  if (context.phase == 0) context.enclosing_region = context.scope;
  context.function = 0;
  scope_time_sums_.count_call(context.scope);
  return true;
}

void ThreadScopeTracker::enter_module(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  const bool is_outermost_module = context.layer == 0;
  const bool is_recomputation = context.is_in_backward;
  if (is_outermost_module || is_recomputation) {
    const bool records_autograd_graph = event.detail_index != 0 || !trace_survey_.has_sequence_numbers();
    const bool is_training =
        is_recomputation || (trace_survey_.is_training_at(event.start_ns) && records_autograd_graph);
    const bool is_loss_module = module_paths_.is_loss_module(event.name_index);
    context.phase = phase_scope(context.enclosing_region, is_training,
                                is_recomputation ? phase_texts_.recompute
                                : is_loss_module ? phase_texts_.loss
                                                 : phase_texts_.forward);
    if (!is_recomputation) {
      ++pass_boundary_count_;
      frame.ends_gap_phase = true;
      if (is_training) frame.gap_phase_after = GapPhase::loss;
    }
  }
  context.is_in_op = context.is_in_backward = context.is_in_communication = false;
  context.function = 0;
  context.module_call_number = ++module_call_count_;
  // A recomputed layer is the same layer as in the forward pass, and so are those around it.
  if (!module_paths_.is_wrapper_module(event.name_index))
    context.layer = module_paths_.find_layer(context.layer, event.name_index);
  context.scope = context.parent_scope = module_paths_.find_or_add_scope(context.layer, context.phase);
  scope_time_sums_.count_call(context.scope);
}

void ThreadScopeTracker::enter_function(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  if (context.is_in_op) return;
  const std::uint32_t text = trace_names_[event.name_index].text;
  if (trace_names_[event.name_index].role == NameRole::backward && context.layer == 0) {
    context.phase = context.parent_scope = phase_scope(context.enclosing_region, true, phase_texts_.backward);
  }
  context.scope = cached_scope(event, context.parent_scope, [&] {
    return scope_interner_.find_or_add_child_scope(context.parent_scope, ScopeKind::function, text);
  });
  if (context.phase == 0) context.function = text + 1;
  scope_time_sums_.count_call(context.scope);
}

void ThreadScopeTracker::enter_communication(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  // Inside communication only an annotation ("nccl:all_reduce") changes the scope: its name is the most specific one.
  if (context.is_in_communication && event.kind != EventKind::annotation) return;
  const std::uint32_t enclosing_scope = context.phase != 0 ? context.phase : context.enclosing_region;
  const std::uint32_t module =
      scope_interner_.find_or_add_child_scope(enclosing_scope, ScopeKind::module, phase_texts_.comm);
  context.scope = trace_names_.op_scope(module, event.name_index);
  context.is_in_op = context.is_in_communication = true;
  scope_time_sums_.count_call(context.scope);
}

void ThreadScopeTracker::enter_scope_from_name(const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  context.scope = trace_names_.scope(event.name_index, context.enclosing_region, context.phase);
  context.is_in_op = true;
  scope_time_sums_.count_call(context.scope);
}

// Returns the parent scope of an operation that is in no phase.
std::uint32_t ThreadScopeTracker::parent_scope_of_op(Thread& thread, const TraceEvent& event, const Context& context) {
  if (const std::uint32_t gap_scope = gap_phase_scope(thread, context)) return gap_scope;
  if (trace_survey_.has_modules()) return context.parent_scope;
  const std::uint32_t phase =
      phase_scope(context.parent_scope, trace_survey_.is_training_at(event.start_ns), phase_texts_.forward);
  if (thread.last_counted_op_phase != phase || thread.last_counted_op_pass != pass_boundary_count_) {
    thread.last_counted_op_phase = phase;
    thread.last_counted_op_pass = pass_boundary_count_;
    scope_time_sums_.count_call(phase);
  }
  return phase;
}

void ThreadScopeTracker::enter_op(Thread& thread, const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  const NameMeaning& name = trace_names_[event.name_index];
  if (name.has_scope) return enter_scope_from_name(event, frame);
  const bool runs_autograd_node =
      name.role == NameRole::autograd_engine || name.role == NameRole::gradient_accumulation || event.is_backward;
  const bool is_nested_node = context.is_in_op && context.is_in_backward && name.role != NameRole::autograd_engine;
  if (runs_autograd_node && !is_nested_node) return enter_backward(thread, event, frame);
  if (event.detail_index > 0 && !event.is_backward && !(context.is_in_backward && context.is_in_op)) {
    // Of operations with the same sequence number, the last one created the autograd node.
    forward_calls_.insert_or_assign(event.detail_index, ForwardCall{context.layer, context.module_call_number});
  }
  if (name.role == NameRole::communication) return enter_communication(event, frame);
  if (context.is_in_op) return add_tensors_to_engine_op(thread, event, frame);
  const std::uint32_t parent_scope =
      context.phase != 0 ? context.parent_scope : parent_scope_of_op(thread, event, context);
  context.scope = op_scope(parent_scope, event);
  context.is_in_op = true;
  scope_time_sums_.count_call(context.scope);
}

// The autograd engine's event lacks the inputs of its node; the nested event of the node has them. Both are one
// operation, so the call and time counted so far move to the scope with the inputs.
void ThreadScopeTracker::add_tensors_to_engine_op(Thread& thread, const TraceEvent& event, Frame& frame) {
  const NameMeaning& name = trace_names_[event.name_index];
  if (thread.stack.size() < 2 || name.tensors == 0 || frame.context.autograd_node_text != name.text + 1) return;
  Frame& engine = thread.stack.end()[-2];
  const std::uint32_t scope =
      scope_interner_.find_or_add_child_scope(engine.context.scope, ScopeKind::tensors, name.tensors - 1);
  scope_time_sums_.move_call_to_scope(engine.context.scope, scope, event.start_ns - engine.begin_ns);
  for (Context* const context : {&engine.context, &frame.context}) {
    context->scope = scope;
    context->autograd_node_text = 0;
  }
}

void ThreadScopeTracker::enter_backward(Thread& thread, const TraceEvent& event, Frame& frame) {
  Context& context = frame.context;
  const std::uint32_t phase = phase_scope(context.enclosing_region, true, phase_texts_.backward);
  const bool is_new_backward_pass = thread.last_backward_pass != pass_boundary_count_;
  if (is_new_backward_pass) {
    thread.last_backward_pass = pass_boundary_count_;
    ++backward_pass_count_;
    scope_time_sums_.count_call(phase);
    if (trace_survey_.has_modules())
      scope_time_sums_.count_call(phase_scope(context.enclosing_region, true, phase_texts_.gradients));
  }
  const auto forward = event.detail_index > 0 ? forward_calls_.find(event.detail_index) : forward_calls_.end();
  // A gradient is accumulated right after the node that produced it, so it belongs to that node's layer.
  const bool is_gradient_accumulation = trace_names_[event.name_index].role == NameRole::gradient_accumulation;
  if (forward == forward_calls_.end() && !is_gradient_accumulation) ++backward_ops_without_forward_;
  ForwardCall forward_call{thread.last_backward_layer, thread.last_backward_call_number};
  if (forward != forward_calls_.end()) {
    forward_call = forward->second;
  } else if (!is_gradient_accumulation) {
    forward_call = {};
  }
  const std::uint32_t parent_scope = module_paths_.find_or_add_scope(forward_call.layer, phase);
  if (forward_call.layer != 0 &&
      (is_new_backward_pass || forward_call.module_call_number != thread.last_backward_call_number))
    scope_time_sums_.count_call(parent_scope);
  thread.last_backward_layer = forward_call.layer;
  thread.last_backward_call_number = forward_call.module_call_number;
  context.phase = phase;
  context.layer = forward_call.layer;
  context.module_call_number = forward_call.module_call_number;
  context.parent_scope = parent_scope;
  context.scope = op_scope(parent_scope, event);
  context.autograd_node_text =
      trace_names_[event.name_index].tensors == 0 ? trace_names_[event.name_index].text + 1 : 0;
  context.function = 0;
  context.is_in_op = context.is_in_backward = true;
  context.is_in_communication = false;
  scope_time_sums_.count_call(context.scope);
}

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// ThreadScopeTracker: tracks the scope of each thread of a trace from event to event, with one stack per thread; time
// belongs to the innermost entry. The rules are those of a live capture (python/capture/), as far as events allow:
//
// - A module call is in the phase forward, loss (of a loss module) or recompute (inside a backward pass).
// - A node of the autograd graph is in the layer of its forward operation, in the phase backward.
// - Operations inside an operation are part of it.
// - Between other phases, the time after a batch is loaded is in the phase input. After the model's call it is in the
//   phase loss and, once a backward pass has begun, in the phase gradients.
// - In a trace without modules, operations in no other phase are forward.
// - Of two events that overlap without nesting, the end of one is cut: of the one that loses less time.
//
// Takes the events of all threads in time order. Stores the scope of each event in TraceEvent::detail. One thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ingest/scope_assignment/module_paths.h"
#include "ingest/scope_assignment/scope_time_sums.h"
#include "ingest/scope_assignment/trace_names.h"
#include "ingest/scope_assignment/trace_survey.h"
#include "scopes/scope_interner.h"

namespace joulemap::ingest {

class ThreadScopeTracker {
 public:
  ThreadScopeTracker(const TraceSurvey& survey, const TraceNames& names, ModulePaths& modules,
                     ScopeInterner& scope_interner, ScopeTimeSums& sums, std::size_t threads);

  void add(TraceEvent& event);
  // Adds the time of every thread up to `until_ns` to its current scope.
  void advance_time_to(std::int64_t until_ns);
  bool has_open_scopes() const;

  std::uint64_t truncated_event_count() const { return truncated_event_count_; }
  // Number of annotations nested in too many regions, which are counted with the enclosing region.
  std::uint64_t too_deep_region_count() const { return too_deep_region_count_; }
  std::uint64_t backward_ops_without_forward() const { return backward_ops_without_forward_; }

 private:
  enum class GapPhase : std::uint8_t { none, input, loss };
  // Inherited state that determines the scope of nested events.
  struct Context {
    std::uint32_t scope = 0;             // scope that gets the time
    std::uint32_t parent_scope = 0;      // parent of operations: a module, a phase or a region
    std::uint32_t enclosing_region = 0;  // parent of modes: a region or the root
    std::uint32_t phase = 0;             // scope of the phase, or 0
    std::uint32_t function = 0;          // text + 1 of the innermost function, where the phase is unknown
    ModulePaths::LayerId layer = 0;
    std::uint32_t module_call_number = 0;  // serial number of the module call
    std::uint32_t region_depth = 0;        // count of enclosing regions
    std::uint32_t autograd_node_text = 0;  // text + 1 of an autograd node whose engine event lacks its inputs
    bool is_in_op = false;
    bool is_in_backward = false;
    bool is_in_communication = false;
  };
  struct Frame {
    Context context;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    EventKind kind = EventKind::op;
    GapPhase gap_phase_after = GapPhase::none;  // Thread::gap after the frame ends
    bool ends_gap_phase = false;
    bool is_truncated = false;
  };
  struct Thread {
    std::vector<Frame> stack;
    std::int64_t attributed_until_ns = 0;
    GapPhase gap_phase = GapPhase::none;
    std::uint64_t backward_passes_before_gap = 0;  // backward_pass_count_ when `gap_phase` began
    std::uint64_t last_backward_pass = 0;          // pass_boundary_count_ at the last backward node on this thread
    std::uint32_t last_counted_op_phase = 0;       // phase last counted for operations in a trace without modules
    std::uint64_t last_counted_op_pass = 0;        // pass_boundary_count_ when last_counted_op_phase was counted
    ModulePaths::LayerId last_backward_layer = 0;  // layer of the last backward node
    std::uint32_t last_backward_call_number = 0;
    bool is_in_active_list = false;  // in active_threads_
  };
  struct ForwardCall {
    ModulePaths::LayerId layer = 0;
    std::uint32_t module_call_number = 0;
  };

  void add_time_until(Thread& thread, std::int64_t until_ns);
  void pop_frames_until(Thread& thread, std::int64_t time_ns);
  bool truncate_to_enclosing_frames(Thread& thread, const TraceEvent& event, std::int64_t& end_ns);
  // The enter functions set the scope of `frame`, which belongs to the event and is the innermost one of its thread.
  // enter_event() and enter_annotation() return false if the event does not change the scope.
  bool enter_event(Thread& thread, const TraceEvent& event, Frame& frame);
  bool enter_annotation(const TraceEvent& event, Frame& frame);
  void enter_module(const TraceEvent& event, Frame& frame);
  void enter_function(const TraceEvent& event, Frame& frame);
  void enter_op(Thread& thread, const TraceEvent& event, Frame& frame);
  void enter_backward(Thread& thread, const TraceEvent& event, Frame& frame);
  void add_tensors_to_engine_op(Thread& thread, const TraceEvent& event, Frame& frame);
  void enter_scope_from_name(const TraceEvent& event, Frame& frame);
  void enter_communication(const TraceEvent& event, Frame& frame);
  std::uint32_t parent_scope_of_op(Thread& thread, const TraceEvent& event, const Context& context);
  void enter_phase(Frame& frame, std::uint32_t phase, std::uint32_t scope);

  template <class Find>
  std::uint32_t cached_scope(const TraceEvent& event, std::uint32_t parent_scope, const Find& find);
  std::uint32_t op_scope(std::uint32_t parent_scope, const TraceEvent& event);
  std::uint32_t phase_scope(std::uint32_t enclosing_region, bool is_training, std::uint32_t phase_text);
  // Scope of the phase that Thread::gap gives (input, loss or gradients), inside the context; 0 if there is no gap.
  std::uint32_t gap_phase_scope(const Thread& thread, const Context& context);
  std::uint32_t gap_phase_or_function_scope(const Thread& thread);
  std::uint32_t current_scope(const Thread& thread);

  const TraceSurvey& trace_survey_;
  const TraceNames& trace_names_;
  ModulePaths& module_paths_;
  ScopeInterner& scope_interner_;
  ScopeTimeSums& scope_time_sums_;
  std::vector<Thread> threads_;
  std::vector<std::uint32_t>
      active_threads_;  // threads that are, or recently were, in a scope: a few of up to a million
  std::unordered_map<std::uint32_t, ForwardCall> forward_calls_;  // by sequence number + 1
  std::uint32_t module_call_count_ = 0;
  std::uint64_t pass_boundary_count_ = 1;  // incremented by everything that ends a backward pass
  std::uint64_t backward_pass_count_ = 0;  // backward passes so far
  std::uint64_t truncated_event_count_ = 0;
  std::uint64_t too_deep_region_count_ = 0;
  std::uint64_t backward_ops_without_forward_ = 0;
  struct CachedScope {
    std::uint32_t parent_scope = 0;
    std::uint32_t scope = 0;
    EventKind kind = EventKind::op;
  };
  std::vector<CachedScope> last_scopes_;  // last scope of each function and operation, by index of its name
  struct CachedPhase {
    std::uint32_t enclosing_region = 0;
    std::uint32_t text = 0;
    std::uint32_t scope = 0;
    bool is_training = false;
  } last_phase_;
  struct PhaseTexts {
    std::uint32_t train, inference, forward, backward, recompute, loss, optimizer, zero_grad, dataloader, input,
        gradients, comm;
  } phase_texts_;
};

}  // namespace joulemap::ingest

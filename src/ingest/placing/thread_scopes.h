// SPDX-License-Identifier: Apache-2.0
//
// ThreadScopes: tracks the scope of each thread of a trace from event to event, with one stack per thread; time
// belongs to the innermost entry. The rules are those of a live capture (python/capture/), as far as events allow:
//
// - A module call is in the phase forward, loss (of a loss module) or recompute (inside a backward pass).
// - A node of the autograd graph is in the layer of its forward operation, in the phase backward.
// - Operations inside an operation are part of it.
// - The time after a batch is loaded is input, after the model's call loss, after the backward pass gradients.
// - In a trace without modules, operations in no other phase are forward.
// - Of overlapping events that do not nest, one is cut: the end of the inner or the outer one, whichever loses less.
//
// Takes the events of all threads in time order. Stores the scope of each event in TraceEvent::detail. One thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ingest/placing/module_paths.h"
#include "ingest/placing/scope_sums.h"
#include "ingest/placing/scope_tree.h"
#include "ingest/placing/trace_names.h"
#include "ingest/placing/trace_survey.h"

namespace joulemap::ingest {

class ThreadScopes {
 public:
  ThreadScopes(const TraceSurvey& survey, const TraceNames& names, ModulePaths& modules, ScopeTree& tree,
               ScopeSums& sums, std::size_t threads);

  void add(TraceEvent& event);
  // Adds the time of every thread up to `until_ns` to its current scope.
  void pass_time(std::int64_t until_ns);
  bool is_anyone_inside() const;

  std::uint64_t cut() const { return cut_; }
  // Annotations nested in too many regions: they are counted with the enclosing region.
  std::uint64_t too_deep() const { return too_deep_; }
  std::uint64_t backward_without_forward() const { return backward_without_forward_; }

 private:
  enum class Between : std::uint8_t { nothing, input, loss };
  // Inherited state that determines the scope of nested events.
  struct Context {
    std::uint32_t scope = 0;      // scope that gets the time
    std::uint32_t container = 0;  // parent of operations: a module, a phase or a region
    std::uint32_t outside = 0;    // parent of modes: a region or the root
    std::uint32_t phase = 0;      // scope of the phase, or 0
    std::uint32_t function = 0;   // text + 1 of the innermost function, where the phase is unknown
    ModulePaths::Node node = 0;
    std::uint32_t call = 0;       // serial number of the module call
    std::uint32_t regions = 0;    // count of enclosing regions
    std::uint32_t node_text = 0;  // text + 1 of an autograd node whose engine event lacks its inputs
    bool in_op = false;
    bool in_backward = false;
    bool in_communication = false;
  };
  struct Frame {
    Context context;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    EventKind kind = EventKind::op;
    Between then = Between::nothing;  // state after the frame ends
    bool ends_between = false;
    bool is_cut = false;
  };
  struct Thread {
    std::vector<Frame> stack;
    std::int64_t last_ns = 0;
    Between between = Between::nothing;
    std::uint64_t backwards_before = 0;  // backward passes before `between` began
    std::uint64_t pass = 0;              // pass of the last backward node on this thread
    std::uint32_t run_phase = 0;         // phase of operations outside of modules,
    std::uint64_t run_pass = 0;          // and the pass in which it began
    ModulePaths::Node last_node = 0;     // layer of the last backward node
    std::uint32_t last_call = 0;
    bool is_listed = false;  // in inside_
  };
  struct Forward {
    ModulePaths::Node node = 0;
    std::uint32_t call = 0;
  };

  void spend(Thread& thread, std::int64_t until_ns);
  void leave_until(Thread& thread, std::int64_t time_ns);
  bool make_room(Thread& thread, const TraceEvent& event, std::int64_t& end_ns);
  // `frame` belongs to the event and is the innermost one of the thread.
  bool enter(Thread& thread, const TraceEvent& event, Frame& frame);
  bool enter_annotation(const TraceEvent& event, Frame& frame);
  void enter_module(const TraceEvent& event, Frame& frame);
  void enter_function(const TraceEvent& event, Frame& frame);
  void enter_op(Thread& thread, const TraceEvent& event, Frame& frame);
  void enter_backward(Thread& thread, const TraceEvent& event, Frame& frame);
  void tell_tensors(Thread& thread, const TraceEvent& event, Frame& frame);
  void enter_reported_scope(const TraceEvent& event, Frame& frame);
  void enter_communication(const TraceEvent& event, Frame& frame);
  std::uint32_t phase_of_op(Thread& thread, const TraceEvent& event, const Context& context);
  void enter_phase(Frame& frame, std::uint32_t phase, std::uint32_t scope);

  template <class Find>
  std::uint32_t known_scope(const TraceEvent& event, std::uint32_t container, const Find& find);
  std::uint32_t op_in(std::uint32_t container, const TraceEvent& event);
  std::uint32_t phase_in(std::uint32_t outside, bool trains, std::uint32_t phase_text);
  // Scope of the phase between phases, inside the context; 0 for none.
  std::uint32_t place_between(const Thread& thread, const Context& context);
  std::uint32_t place_in_between(const Thread& thread);
  std::uint32_t scope_of_time(const Thread& thread);

  const TraceSurvey& survey_;
  const TraceNames& names_;
  ModulePaths& modules_;
  ScopeTree& tree_;
  ScopeSums& sums_;
  std::vector<Thread> threads_;
  std::vector<std::uint32_t> inside_;  // threads that are, or recently were, in a scope: a few of up to a million
  std::unordered_map<std::uint32_t, Forward> forward_;  // by sequence number + 1
  std::uint32_t calls_ = 0;
  std::uint64_t passes_ = 1;     // incremented by everything that ends a backward pass
  std::uint64_t backwards_ = 0;  // backward passes so far
  std::uint64_t cut_ = 0;
  std::uint64_t too_deep_ = 0;
  std::uint64_t backward_without_forward_ = 0;
  struct KnownScope {
    std::uint32_t container = 0;
    std::uint32_t scope = 0;
    EventKind kind = EventKind::op;
  };
  std::vector<KnownScope> last_scopes_;  // of functions and operations, by name
  struct KnownPhase {
    std::uint32_t outside = 0;
    std::uint32_t text = 0;
    std::uint32_t scope = 0;
    bool trains = false;
  } last_phase_;
  struct Texts {
    std::uint32_t train, inference, forward, backward, recompute, loss, optimizer, zero_grad, dataloader, input,
        gradients, comm;
  } texts_;
};

}  // namespace joulemap::ingest

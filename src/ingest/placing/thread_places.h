// SPDX-License-Identifier: Apache-2.0
//
// ThreadPlaces: where each thread of a trace is, from one event to the next: a stack a thread, whose innermost entry has the
// time. The rules are those of a live capture (python/capture/), as far as events tell:
//
// - A call of a module is in the phase forward, loss (of a loss) or recompute (within a backward pass).
// - A node of the autograd graph is at its forward operation's layer, in the phase backward.
// - Operations within an operation are its own business.
// - What follows a batch is input, what follows the model's call is loss, what follows the backward pass is gradients.
// - In a trace without modules what is in no other phase is forward.
// - Events that overlap one they are not within are cut: the inner one's end or the outer one's, whichever costs less.
//
// Events in order of time, of all threads. Leaves in TraceEvent::detail of each event the place it ran at.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ingest/placing/module_paths.h"
#include "ingest/placing/place_sums.h"
#include "ingest/placing/place_tree.h"
#include "ingest/placing/trace_names.h"
#include "ingest/placing/trace_survey.h"

namespace joulemap::ingest {

class ThreadPlaces {
 public:
  ThreadPlaces(const TraceSurvey& survey, const TraceNames& names, ModulePaths& modules, PlaceTree& tree,
               PlaceSums& sums, std::size_t threads);

  void add(TraceEvent& event);
  // Gives every thread's time until then to where it is.
  void pass_time(std::int64_t until_ns);
  bool is_anyone_inside() const;

  std::uint64_t cut() const { return cut_; }
  // Annotations within so many regions that they are counted with those around them.
  std::uint64_t too_deep() const { return too_deep_; }
  std::uint64_t backward_without_forward() const { return backward_without_forward_; }

 private:
  enum class Between : std::uint8_t { nothing, input, loss };
  // What events within are placed by.
  struct Context {
    std::uint32_t place = 0;      // whose time it is
    std::uint32_t container = 0;  // what operations are in: a module, a phase, a region
    std::uint32_t outside = 0;    // what modes are in: a region, or the root
    std::uint32_t phase = 0;      // its place, or 0
    std::uint32_t function = 0;   // of the innermost function, where no phase is known: its text + 1
    ModulePaths::Node node = 0;
    std::uint32_t call = 0;       // of modules, counted
    std::uint32_t regions = 0;    // around
    std::uint32_t node_text = 0;  // of what runs a node and does not tell its inputs: its text + 1
    bool in_op = false;
    bool in_backward = false;
    bool in_communication = false;
  };
  struct Frame {
    Context context;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    EventKind kind = EventKind::op;
    Between then = Between::nothing;  // what follows it
    bool ends_between = false;
    bool is_cut = false;
  };
  struct Thread {
    std::vector<Frame> stack;
    std::int64_t last_ns = 0;
    Between between = Between::nothing;
    std::uint64_t backwards_before = 0;  // passes there had been when it began
    std::uint64_t pass = 0;              // of the last backward node here
    std::uint32_t run_phase = 0;         // the phase that operations without modules are in,
    std::uint64_t run_pass = 0;          // since when
    ModulePaths::Node last_node = 0;     // of backward
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
  // `frame`: of the event, the innermost one of the thread.
  bool enter(Thread& thread, const TraceEvent& event, Frame& frame);
  bool enter_annotation(const TraceEvent& event, Frame& frame);
  void enter_module(const TraceEvent& event, Frame& frame);
  void enter_function(const TraceEvent& event, Frame& frame);
  void enter_op(Thread& thread, const TraceEvent& event, Frame& frame);
  void enter_backward(Thread& thread, const TraceEvent& event, Frame& frame);
  void tell_tensors(Thread& thread, const TraceEvent& event, Frame& frame);
  void enter_told_place(const TraceEvent& event, Frame& frame);
  void enter_communication(const TraceEvent& event, Frame& frame);
  std::uint32_t phase_of_op(Thread& thread, const TraceEvent& event, const Context& context);
  void enter_phase(Frame& frame, std::uint32_t phase, std::uint32_t place);

  template <class Find>
  std::uint32_t known_place(const TraceEvent& event, std::uint32_t container, const Find& find);
  std::uint32_t op_in(std::uint32_t container, const TraceEvent& event);
  std::uint32_t phase_in(std::uint32_t outside, bool trains, std::uint32_t phase_text);
  // The phase between phases, within what the context says; 0 for none.
  std::uint32_t place_between(const Thread& thread, const Context& context);
  std::uint32_t place_in_between(const Thread& thread);
  std::uint32_t place_of_time(const Thread& thread);

  const TraceSurvey& survey_;
  const TraceNames& names_;
  ModulePaths& modules_;
  PlaceTree& tree_;
  PlaceSums& sums_;
  std::vector<Thread> threads_;
  std::vector<std::uint32_t> inside_;  // threads that are, or lately were, at a place: a few of what may be a million
  std::unordered_map<std::uint32_t, Forward> forward_;  // by sequence number + 1
  std::uint32_t calls_ = 0;
  std::uint64_t passes_ = 1;     // grows with whatever ends a backward pass
  std::uint64_t backwards_ = 0;  // backward passes so far
  std::uint64_t cut_ = 0;
  std::uint64_t too_deep_ = 0;
  std::uint64_t backward_without_forward_ = 0;
  struct KnownPlace {
    std::uint32_t container = 0;
    std::uint32_t place = 0;
    EventKind kind = EventKind::op;
  };
  std::vector<KnownPlace> last_places_;  // of functions and operations, by name
  struct KnownPhase {
    std::uint32_t outside = 0;
    std::uint32_t text = 0;
    std::uint32_t place = 0;
    bool trains = false;
  } last_phase_;
  struct Texts {
    std::uint32_t train, inference, forward, backward, recompute, loss, optimizer, zero_grad, dataloader, input,
        gradients, comm;
  } texts_;
};

}  // namespace joulemap::ingest

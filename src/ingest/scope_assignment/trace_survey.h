// SPDX-License-Identifier: Apache-2.0
//
// TraceSurvey: the first pass over the events of a trace, before scopes are assigned. Finds begin and end, the
// training steps, whether the run trains, and whether the trace contains modules. Marks outermost module calls whose
// operations kept an autograd graph (sets TraceEvent::detail of the call to 1). Single-threaded; times are ns of the
// trace's clock.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ingest/scope_assignment/event_order.h"
#include "ingest/scope_assignment/trace_names.h"

namespace joulemap::ingest {

struct TraceStep {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t number = 0;
  std::uint64_t thread = 0;  // thread id of the operating system
  bool is_training = false;
  bool is_inferred = false;  // not annotated in the trace
};

class TraceSurvey {
 public:
  TraceSurvey(const Trace& trace, EventOrder& order, const TraceNames& names);

  std::int64_t begin_ns() const { return begin_ns_; }
  std::int64_t end_ns() const { return end_ns_; }
  const std::vector<TraceStep>& steps() const { return steps_; }  // in time order
  bool has_modules() const { return has_modules_; }
  bool has_sequence_numbers() const { return has_sequence_numbers_; }

  // Returns the step that contains `time_ns`, or null.
  const TraceStep* step_at(std::int64_t time_ns) const;
  // Whether that moment is part of training: its step has a backward pass or an optimizer update. Outside of steps,
  // whether the whole trace has one.
  bool is_training_at(std::int64_t time_ns) const;

 private:
  void take_annotated_steps(const Trace& trace, const TraceNames& names);
  void infer_steps(const Trace& trace, const TraceNames& names);
  void inspect_event(TraceEvent& event, const TraceNames& names);
  void mark_training_step(std::int64_t time_ns);
  TraceStep* find_step(std::int64_t time_ns);

  std::int64_t begin_ns_ = 0;
  std::int64_t end_ns_ = 0;
  std::vector<TraceStep> steps_;
  bool has_modules_ = false;
  bool has_sequence_numbers_ = false;
  bool has_training_ = false;
  TraceEvent* outermost_event_ = nullptr;  // current outermost module call of the thread that is inspected
  std::int64_t outermost_end_ns_ = 0;
};

}  // namespace joulemap::ingest

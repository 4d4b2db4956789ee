// SPDX-License-Identifier: Apache-2.0
//
// TraceSurvey: the first look at the events of a trace, which the placing needs before its own: when it began and ended,
// its steps, whether it trains, whether it tells modules. Marks outermost module calls whose operations kept a graph
// (TraceEvent::detail of the call becomes 1). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ingest/placing/event_order.h"
#include "ingest/placing/trace_names.h"

namespace joulemap::ingest {

struct TraceStep {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t number = 0;
  std::uint64_t thread = 0;  // the system's id
  bool trains = false;
  bool inferred = false;  // the trace does not tell it
};

class TraceSurvey {
 public:
  TraceSurvey(const Trace& trace, EventOrder& order, const TraceNames& names);

  std::int64_t begin_ns() const { return begin_ns_; }
  std::int64_t end_ns() const { return end_ns_; }
  const std::vector<TraceStep>& steps() const { return steps_; }  // in order of time
  bool has_modules() const { return has_modules_; }
  bool has_sequence_numbers() const { return has_sequence_numbers_; }

  // The step that a moment lies in.
  const TraceStep* step_at(std::int64_t time_ns) const;
  // Whether what ran then is part of a training: its step has a backward pass or an update, or the whole trace where it
  // tells no steps.
  bool trains_at(std::int64_t time_ns) const;

 private:
  void take_told_steps(const Trace& trace, const TraceNames& names);
  void infer_steps(const Trace& trace, const TraceNames& names);
  void look_at(TraceEvent& event, const TraceNames& names);
  void note_training(std::int64_t time_ns);
  TraceStep* find(std::int64_t time_ns);

  std::int64_t begin_ns_ = 0;
  std::int64_t end_ns_ = 0;
  std::vector<TraceStep> steps_;
  bool has_modules_ = false;
  bool has_sequence_numbers_ = false;
  bool trains_ = false;
  TraceEvent* outermost_ = nullptr;  // of the present thread
  std::int64_t outermost_end_ns_ = 0;
};

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
#include "ingest/scope_assignment/trace_survey.h"

#include <algorithm>
#include <limits>

namespace joulemap::ingest {
namespace {

template <class Visit>
void for_each_event(const Trace& trace, Visit visit) {
  for (const std::vector<TraceEvent>& block : trace.event_blocks) {
    for (const TraceEvent& event : block) visit(event);
  }
}

std::uint64_t thread_id_of(const Trace& trace, const TraceEvent& event) {
  return event.track_index < trace.threads.size() ? static_cast<std::uint64_t>(trace.threads[event.track_index].thread)
                                                  : 0;
}

}  // namespace

TraceSurvey::TraceSurvey(const Trace& trace, EventOrder& order, const TraceNames& names)
    : begin_ns_(order.time_extent().first_start_ns), end_ns_(order.time_extent().end_ns) {
  bool has_annotations = false;
  for (std::size_t thread = 0; thread < order.thread_count(); ++thread) {
    has_annotations = has_annotations || order.thread_has_kind(thread, EventKind::annotation);
  }
  if (has_annotations) take_annotated_steps(trace, names);
  if (has_annotations && steps_.empty()) infer_steps(trace, names);
  for (std::size_t thread = 0; thread < order.thread_count(); ++thread) {
    // Functions and runtime calls are irrelevant here; some threads have nothing else.
    const bool has_scope_events = order.thread_has_kind(thread, EventKind::op) ||
                                  order.thread_has_kind(thread, EventKind::module) ||
                                  order.thread_has_kind(thread, EventKind::annotation);
    if (!has_scope_events) continue;
    outermost_event_ = nullptr;
    for (const std::uint32_t number : order.thread(thread)) inspect_event(order.event(number), names);
  }
}

void TraceSurvey::take_annotated_steps(const Trace& trace, const TraceNames& names) {
  std::vector<TraceStep> annotated_steps;
  for_each_event(trace, [&](const TraceEvent& event) {
    if (event.kind != EventKind::annotation || names[event.name_index].role != NameRole::step) return;
    annotated_steps.push_back(
        {event.start_ns, end_ns_of(event), names[event.name_index].number, thread_id_of(trace, event)});
    annotated_steps.back().is_inferred = trace.are_steps_inferred;
  });
  std::sort(annotated_steps.begin(), annotated_steps.end(),
            [](const TraceStep& a, const TraceStep& b) { return a.begin_ns < b.begin_ns; });
  // If two threads annotate the same step, the first one counts.
  for (const TraceStep& step : annotated_steps) {
    if (steps_.empty() || step.begin_ns >= steps_.back().end_ns || step.number != steps_.back().number) {
      steps_.push_back(step);
    }
  }
}

// For a trace without annotated steps. Same rule as a live capture: a training step ends with the parameter update.
// Updates without a backward pass between them belong to one step with several optimizers.
void TraceSurvey::infer_steps(const Trace& trace, const TraceNames& names) {
  std::vector<TraceStep> updates;
  for_each_event(trace, [&](const TraceEvent& event) {
    if (event.kind != EventKind::annotation || names[event.name_index].role != NameRole::optimizer) return;
    updates.push_back({event.start_ns, end_ns_of(event), 0, thread_id_of(trace, event)});
  });
  if (updates.empty()) return;
  std::sort(updates.begin(), updates.end(), [](const TraceStep& a, const TraceStep& b) { return a.end_ns < b.end_ns; });
  for_each_event(trace, [&](const TraceEvent& event) {
    if (event.kind != EventKind::op ||
        !(event.is_backward || names[event.name_index].role == NameRole::autograd_engine))
      return;
    const auto next_update =
        std::lower_bound(updates.begin(), updates.end(), event.start_ns,
                         [](const TraceStep& update, std::int64_t time) { return update.end_ns < time; });
    if (next_update != updates.end()) next_update->is_training = true;
  });
  std::int64_t begin_ns = begin_ns_;
  for (const TraceStep& update : updates) {
    if (!update.is_training && !steps_.empty()) {
      steps_.back().end_ns = update.end_ns;
    } else {
      steps_.push_back({begin_ns, update.end_ns, steps_.size(), update.thread, true, true});
    }
    begin_ns = update.end_ns;
  }
}

void TraceSurvey::inspect_event(TraceEvent& event, const TraceNames& names) {
  if (outermost_event_ != nullptr && event.start_ns >= outermost_end_ns_) outermost_event_ = nullptr;
  const NameMeaning& name = names[event.name_index];
  if (event.kind == EventKind::module) {
    has_modules_ = true;
    event.detail_index = 0;
    if (outermost_event_ != nullptr) return;
    outermost_event_ = &event;
    outermost_end_ns_ = end_ns_of(event);
    return;
  }
  if (event.kind == EventKind::annotation && name.role == NameRole::optimizer) mark_training_step(event.start_ns);
  if (event.kind != EventKind::op) return;
  if (event.is_backward || name.role == NameRole::autograd_engine) {
    mark_training_step(event.start_ns);
  } else if (event.detail_index > 0) {
    has_sequence_numbers_ = true;
    if (outermost_event_ != nullptr) outermost_event_->detail_index = 1;
  }
}

TraceStep* TraceSurvey::find_step(std::int64_t time_ns) {
  const auto next_step =
      std::upper_bound(steps_.begin(), steps_.end(), time_ns,
                       [](std::int64_t time, const TraceStep& step) { return time < step.begin_ns; });
  if (next_step == steps_.begin() || time_ns >= std::prev(next_step)->end_ns) return nullptr;
  return &*std::prev(next_step);
}

const TraceStep* TraceSurvey::step_at(std::int64_t time_ns) const {
  return const_cast<TraceSurvey*>(this)->find_step(time_ns);
}

void TraceSurvey::mark_training_step(std::int64_t time_ns) {
  has_training_ = true;
  if (TraceStep* const step = find_step(time_ns)) step->is_training = true;
}

bool TraceSurvey::is_training_at(std::int64_t time_ns) const {
  const TraceStep* const step = step_at(time_ns);
  return step != nullptr ? step->is_training : has_training_;
}

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
#include "ingest/placing/trace_survey.h"

#include <algorithm>
#include <limits>

namespace joulemap::ingest {
namespace {

template <class Visit>
void for_each(const Trace& trace, Visit visit) {
  for (const std::vector<TraceEvent>& block : trace.blocks) {
    for (const TraceEvent& event : block) visit(event);
  }
}

std::uint64_t thread_of(const Trace& trace, const TraceEvent& event) {
  return event.track < trace.threads.size() ? static_cast<std::uint64_t>(trace.threads[event.track].thread) : 0;
}

}  // namespace

TraceSurvey::TraceSurvey(const Trace& trace, EventOrder& order, const TraceNames& names)
    : begin_ns_(order.extent().begin_ns), end_ns_(order.extent().end_ns) {
  bool has_annotations = false;
  for (std::size_t thread = 0; thread < order.threads(); ++thread) {
    has_annotations = has_annotations || order.thread_has(thread, EventKind::annotation);
  }
  if (has_annotations) take_told_steps(trace, names);
  if (has_annotations && steps_.empty()) infer_steps(trace, names);
  for (std::size_t thread = 0; thread < order.threads(); ++thread) {
    // Functions and runtime calls are irrelevant here; some threads have nothing else.
    const bool has_something = order.thread_has(thread, EventKind::op) || order.thread_has(thread, EventKind::module) ||
                               order.thread_has(thread, EventKind::annotation);
    if (!has_something) continue;
    outermost_ = nullptr;
    for (const std::uint32_t number : order.thread(thread)) look_at(order.event(number), names);
  }
}

void TraceSurvey::take_told_steps(const Trace& trace, const TraceNames& names) {
  std::vector<TraceStep> told;
  for_each(trace, [&](const TraceEvent& event) {
    if (event.kind != EventKind::annotation || names[event.name].role != NameRole::step) return;
    told.push_back({event.start_ns, end_of(event), names[event.name].number, thread_of(trace, event)});
  });
  std::sort(told.begin(), told.end(), [](const TraceStep& a, const TraceStep& b) { return a.begin_ns < b.begin_ns; });
  // If two threads annotate the same step, the first one counts.
  for (const TraceStep& step : told) {
    if (steps_.empty() || step.begin_ns >= steps_.back().end_ns || step.number != steps_.back().number) {
      steps_.push_back(step);
    }
  }
}

// Same rule as a live capture: a training step ends with the parameter update. Updates without a backward pass
// between them belong to one step with several optimizers.
void TraceSurvey::infer_steps(const Trace& trace, const TraceNames& names) {
  std::vector<TraceStep> updates;
  for_each(trace, [&](const TraceEvent& event) {
    if (event.kind != EventKind::annotation || names[event.name].role != NameRole::optimizer) return;
    updates.push_back({event.start_ns, end_of(event), 0, thread_of(trace, event)});
  });
  if (updates.empty()) return;
  std::sort(updates.begin(), updates.end(), [](const TraceStep& a, const TraceStep& b) { return a.end_ns < b.end_ns; });
  for_each(trace, [&](const TraceEvent& event) {
    if (event.kind != EventKind::op || !(event.is_backward || names[event.name].role == NameRole::engine)) return;
    const auto next = std::lower_bound(updates.begin(), updates.end(), event.start_ns,
                                       [](const TraceStep& update, std::int64_t time) { return update.end_ns < time; });
    if (next != updates.end()) next->trains = true;
  });
  std::int64_t begin_ns = begin_ns_;
  for (const TraceStep& update : updates) {
    if (!update.trains && !steps_.empty()) {
      steps_.back().end_ns = update.end_ns;
    } else {
      steps_.push_back({begin_ns, update.end_ns, steps_.size(), update.thread, true, true});
    }
    begin_ns = update.end_ns;
  }
}

void TraceSurvey::look_at(TraceEvent& event, const TraceNames& names) {
  if (outermost_ != nullptr && event.start_ns >= outermost_end_ns_) outermost_ = nullptr;
  const NameMeaning& name = names[event.name];
  if (event.kind == EventKind::module) {
    has_modules_ = true;
    event.detail = 0;
    if (outermost_ != nullptr) return;
    outermost_ = &event;
    outermost_end_ns_ = end_of(event);
    return;
  }
  if (event.kind == EventKind::annotation && name.role == NameRole::optimizer) note_training(event.start_ns);
  if (event.kind != EventKind::op) return;
  if (event.is_backward || name.role == NameRole::engine) {
    note_training(event.start_ns);
  } else if (event.detail > 0) {
    has_sequence_numbers_ = true;
    if (outermost_ != nullptr) outermost_->detail = 1;
  }
}

TraceStep* TraceSurvey::find(std::int64_t time_ns) {
  const auto after = std::upper_bound(steps_.begin(), steps_.end(), time_ns,
                                      [](std::int64_t time, const TraceStep& step) { return time < step.begin_ns; });
  if (after == steps_.begin() || time_ns >= std::prev(after)->end_ns) return nullptr;
  return &*std::prev(after);
}

const TraceStep* TraceSurvey::step_at(std::int64_t time_ns) const {
  return const_cast<TraceSurvey*>(this)->find(time_ns);
}

void TraceSurvey::note_training(std::int64_t time_ns) {
  trains_ = true;
  if (TraceStep* const step = find(time_ns)) step->trains = true;
}

bool TraceSurvey::trains_at(std::int64_t time_ns) const {
  const TraceStep* const step = step_at(time_ns);
  return step != nullptr ? step->trains : trains_;
}

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
#include "ingest/scope_assignment/scope_assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/scoped_signal_block.h"
#include "ingest/scope_assignment/event_order.h"
#include "ingest/scope_assignment/kernel_time_sums.h"
#include "ingest/scope_assignment/launch_index.h"
#include "ingest/scope_assignment/module_paths.h"
#include "ingest/scope_assignment/scope_time_sums.h"
#include "ingest/scope_assignment/thread_scope_tracker.h"
#include "ingest/scope_assignment/trace_names.h"
#include "ingest/scope_assignment/trace_survey.h"
#include "scopes/scope_interner.h"

namespace joulemap::ingest {
namespace {

// A time slice is 10 ms, about as fine as power samples. In long traces slices are longer: there are at most
// kMaxActivitySlices, so that a damaged time cannot create millions.
constexpr std::int64_t kMinSliceLength_ns = 10 * kNanosecondsPerMillisecond;
constexpr std::int64_t kMaxActivitySlices = 20'000;

// Times beyond these are damage: a start after the year 2096, and an event longer than eleven days. start + duration of
// valid events does not overflow.
constexpr std::int64_t kLatestPlausibleTime_ns = 4'000'000'000'000'000'000;
constexpr std::int64_t kLongestPlausibleEvent_ns = 1'000'000'000'000'000;
// No trace covers months: an event farther than this from the median start is damage and would lengthen the trace.
constexpr std::int64_t kMaxDistanceFromMedian_ns = 30 * std::int64_t{86'400} * kNanosecondsPerSecond;
constexpr std::size_t kMedianSampleSize = 4096;  // events sampled to find the median

using ActivitySink = std::function<void(Activity)>;

bool has_plausible_times(const TraceEvent& event) {
  const bool is_plausible = event.start_ns >= -kLatestPlausibleTime_ns && event.start_ns <= kLatestPlausibleTime_ns;
  return is_plausible && event.duration_ns >= 0 && event.duration_ns <= kLongestPlausibleEvent_ns;
}

// Approximate median start of the events with plausible times, ns; 0 without events.
std::int64_t median_start_ns(const Trace& trace) {
  std::size_t events = 0;
  for (const std::vector<TraceEvent>& block : trace.event_blocks) events += block.size();
  const std::size_t stride = events / kMedianSampleSize + 1;
  std::vector<std::int64_t> starts_ns;
  std::size_t event_index = 0;
  for (const std::vector<TraceEvent>& block : trace.event_blocks) {
    for (; event_index < block.size(); event_index += stride) {
      if (has_plausible_times(block[event_index])) starts_ns.push_back(block[event_index].start_ns);
    }
    event_index -= block.size();
  }
  if (starts_ns.empty()) return 0;
  const auto median = starts_ns.begin() + static_cast<std::ptrdiff_t>(starts_ns.size() / 2);
  std::nth_element(starts_ns.begin(), median, starts_ns.end());
  return *median;
}

void drop_implausible_events(Trace& trace, std::int64_t median_ns, Diagnostics& diagnostics) {
  std::uint64_t dropped_count = 0;
  for (std::vector<TraceEvent>& block : trace.event_blocks) {
    dropped_count += std::erase_if(block, [&](const TraceEvent& event) {
      return !has_plausible_times(event) || std::abs(event.start_ns - median_ns) > kMaxDistanceFromMedian_ns;
    });
  }
  trace.dropped_event_count += dropped_count;
  diagnostics.add({"events_out_of_time", dropped_count, "events with impossible times were skipped", {}});
}

// Groups the events by track, after removing those with impossible times from the trace. These are rare, so all events
// are grouped first, and again only if some must be removed.
EventOrder make_event_order(Trace& trace, Diagnostics& diagnostics) {
  EventOrder order(trace);
  const TimeExtent& time_extent = order.time_extent();
  const std::int64_t median_ns = median_start_ns(trace);
  const bool are_all_plausible =
      has_plausible_times({.start_ns = time_extent.first_start_ns, .duration_ns = time_extent.shortest_duration_ns}) &&
      has_plausible_times({.start_ns = time_extent.last_start_ns, .duration_ns = time_extent.longest_duration_ns}) &&
      median_ns - time_extent.first_start_ns <= kMaxDistanceFromMedian_ns &&
      time_extent.last_start_ns - median_ns <= kMaxDistanceFromMedian_ns;
  if (are_all_plausible) return order;
  drop_implausible_events(trace, median_ns, diagnostics);
  return EventOrder(trace);
}

std::int64_t choose_slice_length_ns(const TraceSurvey& survey) {
  // Halves: in a damaged trace the difference of two times may overflow.
  const std::int64_t half_ns = survey.end_ns() / 2 - survey.begin_ns() / 2;
  return std::max(kMinSliceLength_ns, half_ns / (kMaxActivitySlices / 2));
}

std::int64_t saturating_add(std::int64_t time_ns, std::int64_t offset_ns) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return time_ns > kMost - offset_ns ? kMost : time_ns + offset_ns;
}

// Runs `task_function` on another thread, which wait() or the destructor joins; without `has_thread`, in the constructor.
class BackgroundTask {
 public:
  BackgroundTask(bool has_thread, const std::function<void()>& task_function) {
    if (has_thread) {
      const ScopedSignalBlock signal_block;
      thread_ = std::thread(task_function);
    } else {
      task_function();
    }
  }
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;
  ~BackgroundTask() { wait(); }
  void wait() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

// Sums the time of threads in scopes by time slice, and passes each slice to the sink.
class HostTimePass {
 public:
  HostTimePass(const TraceSurvey& survey, ThreadScopeTracker& scopes, ScopeTimeSums& sums,
               ScopeInterner& scope_interner, const ActivitySink& sink)
      : scopes_(scopes),
        sums_(sums),
        scope_interner_(scope_interner),
        sink_(sink),
        slice_length_ns_(choose_slice_length_ns(survey)),
        slice_begin_ns_(survey.begin_ns()) {}

  void run(EventOrder& order, std::int64_t end_ns) {
    std::vector<EventOrder::Track> tracks;
    for (std::size_t thread = 0; thread < order.thread_count(); ++thread) tracks.push_back(order.thread(thread));
    TrackMerger merge(order, std::move(tracks));
    std::int64_t slice_end_ns = saturating_add(slice_begin_ns_, slice_length_ns_);
    for (auto events = merge.next_batch(); !events.empty(); events = merge.next_batch()) {
      for (TraceEvent* const event : events) {
        while (event->start_ns >= slice_end_ns && slice_end_ns < end_ns) {
          close_slice(slice_end_ns);
          if (!scopes_.has_open_scopes()) slice_begin_ns_ = std::max(slice_begin_ns_, event->start_ns);
          slice_end_ns = saturating_add(slice_begin_ns_, slice_length_ns_);
        }
        scopes_.add(*event);
      }
    }
    while (slice_end_ns < end_ns && scopes_.has_open_scopes()) {
      close_slice(slice_end_ns);
      slice_end_ns = saturating_add(slice_begin_ns_, slice_length_ns_);
    }
    close_slice(end_ns);
  }

 private:
  void close_slice(std::int64_t end_ns) {
    scopes_.advance_time_to(end_ns);
    Activity activity;
    activity.begin_ns = slice_begin_ns_;
    activity.end_ns = std::max(end_ns, slice_begin_ns_);
    activity.scopes = scope_interner_.take_new_scopes();
    activity.scope_tallies = sums_.take_sums();
    slice_begin_ns_ = activity.end_ns;
    if (!activity.empty()) sink_(std::move(activity));
  }

  ThreadScopeTracker& scopes_;
  ScopeTimeSums& sums_;
  ScopeInterner& scope_interner_;
  const ActivitySink& sink_;
  std::int64_t slice_length_ns_;
  std::int64_t slice_begin_ns_;
};

// Assigns kernels to scopes, sums their time by time slice, and passes each slice to the sink.
class KernelTimePass {
 public:
  KernelTimePass(Trace& trace, const TraceSurvey& survey, const TraceNames& names, ScopeInterner& scope_interner,
                 ScopedTrace& scoped_trace, const LaunchIndex& launches, const ActivitySink& sink)
      : trace_(trace),
        survey_(survey),
        names_(names),
        scope_interner_(scope_interner),
        launches_(launches),
        result_(scoped_trace),
        sink_(sink) {
    for (const TraceStep& step : survey.steps()) {
      StepRecord record;
      record.number = static_cast<std::int64_t>(step.number);
      record.begin_ns = step.begin_ns;
      record.end_ns = step.end_ns;
      record.is_traced = record.has_kernel_records = true;
      steps_.push_back(record);
    }
  }

  void run(EventOrder& order) {
    std::vector<EventOrder::Track> tracks;
    for (std::size_t queue = 0; queue < order.queue_count(); ++queue) tracks.push_back(order.queue(queue));
    TrackMerger merge(order, std::move(tracks));
    const std::int64_t length_ns = choose_slice_length_ns(survey_);
    activity_.classes = std::move(trace_.kernel_classes);
    activity_.queues = trace_.kernel_queues;
    activity_.begin_ns = survey_.begin_ns();
    std::int64_t slice_end_ns = saturating_add(survey_.begin_ns(), length_ns);
    for (auto events = merge.next_batch(); !events.empty(); events = merge.next_batch()) {
      for (const TraceEvent* const event : events) {
        while (event->start_ns >= slice_end_ns && slice_end_ns < survey_.end_ns()) {
          close_slice(slice_end_ns);
          if (running_kernels_.empty()) activity_.begin_ns = std::max(activity_.begin_ns, event->start_ns);
          slice_end_ns = saturating_add(activity_.begin_ns, length_ns);
        }
        add(*event);
      }
    }
    while (slice_end_ns < survey_.end_ns() && !running_kernels_.empty()) {
      close_slice(slice_end_ns);
      slice_end_ns = saturating_add(activity_.begin_ns, length_ns);
    }
    activity_.steps = std::move(steps_);
    close_slice(survey_.end_ns());
  }

 private:
  void add(const TraceEvent& event) {
    Kernel kernel;
    kernel.start_ns = event.start_ns;
    kernel.end_ns = end_ns_of(event);
    kernel.class_id = event.name_index;
    kernel.queue = event.track_index;
    kernel.correlation = event.correlation;
    const bool moves_bytes = event.kind == EventKind::copy || event.kind == EventKind::fill;
    if (moves_bytes && event.detail_index < trace_.byte_counts.size())
      kernel.bytes = trace_.byte_counts[event.detail_index];
    const std::int64_t time_ns = kernel.end_ns - kernel.start_ns;
    const std::optional<KernelLaunch> launch = launches_.find_launch(event);
    if (launch) {
      kernel.scope = launch->scope;
      if (const TraceStep* const step = survey_.step_at(launch->time_ns)) {
        StepRecord& record = steps_[static_cast<std::size_t>(step - survey_.steps().data())];
        ++record.kernels;
        record.summed_kernel_ns += time_ns;
      }
    }
    if (trace_.gpu_events_identify_ops && event.external_id > 0) {
      const std::uint32_t name = event.external_id - 1;
      kernel.scope = names_[name].has_scope ? names_.scope(name, 0, 0) : names_.op_scope(kernel.scope, name);
    }
    ++result_.kernels;
    result_.kernel_time_ns += time_ns;
    if (kernel.scope == 0) {
      ++result_.kernels_without_scope;
      result_.kernel_time_without_scope_ns += time_ns;
    }
    activity_.kernels.push_back(kernel);
    running_kernels_.push_back({kernel, true});
  }

  // Ends the slice and passes it to the sink. A kernel that is still running gets the rest of its time in later slices.
  void close_slice(std::int64_t end_ns) {
    activity_.end_ns = std::max(end_ns, activity_.begin_ns);
    std::size_t running_kernel_count = 0;
    for (const RunningKernel& running_kernel : running_kernels_) {
      const Kernel kernel = running_kernel.kernel;
      const std::int64_t from_ns = running_kernel.is_new ? kernel.start_ns : activity_.begin_ns;
      const std::int64_t time_ns = std::max(std::min(kernel.end_ns, activity_.end_ns) - from_ns, std::int64_t{0});
      sums_.add(kernel, running_kernel.is_new ? 1 : 0, time_ns);
      if (kernel.end_ns > activity_.end_ns) running_kernels_[running_kernel_count++] = {kernel, false};
    }
    running_kernels_.resize(running_kernel_count);
    activity_.kernel_tallies = sums_.take_rows();
    activity_.scopes = scope_interner_.take_new_scopes();
    const std::int64_t next_ns = activity_.end_ns;
    if (!activity_.empty()) sink_(std::exchange(activity_, {}));
    activity_.begin_ns = next_ns;
  }

  struct RunningKernel {
    Kernel kernel;
    bool is_new;
  };
  Trace& trace_;
  const TraceSurvey& survey_;
  const TraceNames& names_;
  ScopeInterner& scope_interner_;
  const LaunchIndex& launches_;
  ScopedTrace& result_;
  const ActivitySink& sink_;
  Activity activity_;
  std::vector<RunningKernel> running_kernels_;
  KernelTimeSums sums_;
  std::vector<StepRecord> steps_;
};

void add_marks_and_diagnostics(const TraceSurvey& survey, const ThreadScopeTracker& scopes, const ModulePaths& modules,
                               const ScopeInterner& scope_interner, ScopedTrace& scoped_trace) {
  for (const TraceStep& step : survey.steps()) {
    scoped_trace.marks.push_back(
        {step.begin_ns, MarkKind::step, step.number, step.thread, step.is_inferred ? "inferred" : ""});
  }
  const auto note = [&](std::string_view code, std::uint64_t count, std::string message, std::string remedy = {}) {
    if (count > 0) scoped_trace.diagnostics.add({std::string(code), count, std::move(message), std::move(remedy)});
  };
  note("events_cut", scopes.truncated_event_count(),
       "overlapping events of a thread were cut where the other event begins or ends");
  note("backward_without_forward", scopes.backward_ops_without_forward(),
       "backward operations without their forward operation in the trace: their layer is unknown");
  note("kernels_without_place", scoped_trace.kernels_without_scope,
       fmt::format("kernels ({:.1f} % of kernel time) without a launch in the trace: they have no layer or phase",
                   100 * static_cast<double>(scoped_trace.kernel_time_without_scope_ns) /
                       static_cast<double>(std::max<std::int64_t>(scoped_trace.kernel_time_ns, 1))));
  note("modules_without_path", modules.pathless_call_count(),
       "modules that are not in the --modules file are named by class and number");
  note("nested_too_deep", scopes.too_deep_region_count() + modules.too_deep_call_count(),
       "regions nested deeper than 64 and modules nested deeper than 256 are counted with the enclosing ones");
  note("too_many_places", scope_interner.refused_scope_count(),
       "scopes beyond one million are counted with the enclosing ones");
}

}  // namespace

ScopedTrace assign_scopes(Trace& trace, const scopes::ModuleNames& module_names, const ActivitySink& sink,
                          std::size_t threads) {
  ScopedTrace scoped_trace;
  EventOrder order = make_event_order(trace, scoped_trace.diagnostics);
  ScopeInterner scope_interner;
  const TraceNames names(trace, scope_interner);
  std::optional<LaunchIndex> launches;
  BackgroundTask kernel_preparation(threads > 1, [&] {
    order.sort_queues();
    launches.emplace(trace, order);
  });
  order.sort_threads();
  const TraceSurvey survey(trace, order, names);
  ModulePaths modules(module_names, names, scope_interner);
  ScopeTimeSums sums;
  ThreadScopeTracker scopes(survey, names, modules, scope_interner, sums, order.thread_count());
  scoped_trace.begin_ns = survey.begin_ns();
  scoped_trace.end_ns = survey.end_ns();
  HostTimePass(survey, scopes, sums, scope_interner, sink).run(order, survey.end_ns());
  kernel_preparation.wait();
  KernelTimePass(trace, survey, names, scope_interner, scoped_trace, *launches, sink).run(order);
  scoped_trace.thread_time_in_scopes_ns = sums.total_time_ns();
  const bool is_pytorch_trace = trace.format == "kineto";
  if (is_pytorch_trace && !survey.has_modules()) {
    scoped_trace.diagnostics.add(
        {"no_modules", 1,
         "the trace contains no layers: everything outside backward, optimizer and data loading counts as forward",
         "profile with with_stack=True"});
  }
  add_marks_and_diagnostics(survey, scopes, modules, scope_interner, scoped_trace);
  return scoped_trace;
}

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// Trace: the events that another tool's profiler wrote, before they are assigned to scopes. Each format reader
// (kineto/, xplane/, nsys/ ...) creates one; scope_assignment/ converts it to the Activity that a capture would record.
// Plain data, owned by the importer; times are integer nanoseconds of the trace's clock.
//
// Events stay in the blocks in which they were read, in file order: nothing is copied while a trace grows. An event
// takes 40 bytes. Repeated data (names, threads, kernel classes, queues) is stored once and referenced by index.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/activity.h"
#include "model/diagnostics.h"
#include "model/recorded.h"
#include "scopes/op_names.h"

namespace joulemap::ingest {

enum class EventKind : std::uint8_t {
  // Events on a thread; they nest.
  op,          // an operation of the framework
  annotation,  // a range named by the program or the framework: record_function, NVTX, ProfilerStep#3
  module,      // a call of a layer
  function,    // a function of the program
  api,         // a call of the GPU's runtime or driver; the work it launches has its correlation id
  // Events on a GPU queue; they may overlap.
  kernel,
  copy,
  fill,
  graph,
};
constexpr bool is_on_gpu(EventKind kind) { return kind >= EventKind::kernel; }

struct TraceEvent {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t name_index = 0;   // on a thread: index in Trace::names; on a GPU: in Trace::classes
  std::uint32_t track_index = 0;  // on a thread: index in Trace::threads; on a GPU: in Trace::queues
  std::uint32_t correlation = 0;  // id of an api call and of the work it launched (all kernels of a graph); 0: none
  std::uint32_t external_id =
      0;  // id of an op and of the work it launched; 0: none or unknown. See gpu_events_identify_ops
  std::uint32_t detail_index = 0;  // op: autograd's sequence number + 1; copy and fill: index in Trace::bytes; else 0
  EventKind kind = EventKind::op;
  bool is_backward = false;  // op that runs a node of the autograd graph; its detail equals that of the forward op
};
static_assert(sizeof(TraceEvent) == 40);

struct TraceName {
  std::string text;
  scopes::OpScope scope;  // scope that the name itself contains (XLA, TensorFlow, ONNX Runtime), or empty
};

struct TraceThread {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  std::string name;
};

enum class TraceClock : std::uint8_t {
  unix_time,
  since_start,  // since the start of the profile, whose absolute time is unknown
};

struct Trace {
  std::string format;  // "kineto"
  TraceClock clock = TraceClock::unix_time;
  std::optional<std::int64_t> process;  // pid, if the trace is of one process
  std::optional<std::int64_t> rank;     // rank of the process in a distributed run
  std::string host;
  std::vector<EnvironmentFact> environment;  // versions, names of GPUs

  std::vector<TraceName> names;
  std::vector<TraceThread> threads;
  std::vector<KernelClass> kernel_classes;  // id = index
  std::vector<KernelQueue> kernel_queues;   // id = index
  std::vector<std::uint64_t> byte_counts;   // sizes of copies and fills; [0] is 0, for unknown sizes
  std::vector<std::vector<TraceEvent>> event_blocks;
  // Whether GPU events identify their op themselves (XLA programs, nodes of TensorFlow and ONNX Runtime). If so,
  // `external_id` of a GPU event is the op's index in `names` + 1, and that name's scope is the event's; 0: none.
  bool gpu_events_identify_ops = false;

  // Whether the reader inferred the steps, which are annotations named ProfilerStep#N, from other events.
  bool are_steps_inferred = false;

  std::uint64_t read_event_count = 0;     // all events in the file
  std::uint64_t dropped_event_count = 0;  // invalid events, included in read_event_count; diagnostics give the reasons
  Diagnostics diagnostics;
};

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// Trace: what another tool's profiler wrote down, as events, before they are given places. Every reader of a format
// (kineto/, xplane/, nsys/ ...) makes one; placing.h turns it into the Activity that a capture would have recorded. Plain
// data, owned by who imports; times are integer nanoseconds of the trace's clock.
//
// Events stay in the blocks in which they were read, in the order of the file: nothing is copied while a trace grows, and
// an event takes 40 bytes. What repeats (names, threads, kernel classes, queues) is kept once and told by its index.
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
  // On a thread; they nest.
  op,          // an operation of the framework
  annotation,  // what the program or the framework named: record_function, NVTX, ProfilerStep#3
  module,      // a call of a layer
  function,    // a function of the program
  api,         // a call of the runtime or the driver: what it launched has its correlation
  // On a queue of a GPU; they may overlap.
  kernel,
  copy,
  fill,
  graph,
};
constexpr bool is_on_gpu(EventKind kind) { return kind >= EventKind::kernel; }

struct TraceEvent {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t name = 0;         // on a thread: index of names; on a GPU: of classes
  std::uint32_t track = 0;        // on a thread: index of threads; on a GPU: of queues
  std::uint32_t correlation = 0;  // of an api call and of what it launched; 0: none. They repeat (graphs)
  std::uint32_t external = 0;  // of an op and of what it launched, where the trace says so; 0: none. See gpu_names_ops
  std::uint32_t detail = 0;    // of an op: autograd's sequence number + 1; of copy and fill: index of bytes; else 0
  EventKind kind = EventKind::op;
  bool is_backward = false;  // of an op: it runs a node of the autograd graph, and detail is that of the forward op
};
static_assert(sizeof(TraceEvent) == 40);

struct TraceName {
  std::string text;
  OpPlace place;  // what the name itself tells of where it belongs (XLA's, TensorFlow's, ONNX Runtime's), or nothing
};

struct TraceThread {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  std::string name;
};

enum class TraceClock : std::uint8_t {
  unix_time,
  since_start,  // of the profile, whose moment the file does not tell
};

struct Trace {
  std::string format;  // "kineto"
  TraceClock clock = TraceClock::unix_time;
  std::optional<std::int64_t> process;  // whose trace it is, where it is one process's
  std::optional<std::int64_t> rank;     // of a distributed run
  std::string host;
  std::vector<EnvironmentFact> facts;  // versions, names of GPUs

  std::vector<TraceName> names;
  std::vector<TraceThread> threads;
  std::vector<KernelClass> classes;  // id = index
  std::vector<KernelQueue> queues;   // id = index
  std::vector<std::uint64_t> bytes;  // of copies and fills; [0] is 0, for those of unknown size
  std::vector<std::vector<TraceEvent>> blocks;
  // Whether what runs on a GPU itself tells its op (XLA's programs, TensorFlow's and ONNX Runtime's nodes): `external` of
  // an event on a GPU is then the index of names + 1, and that name's place is the event's; 0: it tells none.
  bool gpu_names_ops = false;

  std::uint64_t events_read = 0;     // everything in the file that is an event
  std::uint64_t events_dropped = 0;  // of these, those that could not be understood; diagnostics say why
  Diagnostics diagnostics;
};

}  // namespace joulemap::ingest

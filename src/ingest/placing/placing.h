// SPDX-License-Identifier: Apache-2.0
//
// Placing: from the events of a Trace to the Activity that a live capture of the same run would have recorded: places with
// their own times, kernels that belong to the place that launched them, steps. Pure; memory beyond the trace is a few bytes
// an event.
//
// - On a thread events nest: a stack tells for each moment the innermost place (thread_places.h). Siblings that overlap are
//   cut.
// - A kernel belongs where the call of the runtime with its correlation was made; else to the op of its external id; else
//   to nothing, which is counted (kernel_places.h).
// - A backward op belongs to the layer of the forward op with its sequence number.
// - A name that carries its place (XLA's, TensorFlow's) needs none of this.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ingest/trace.h"
#include "model/activity.h"
#include "model/diagnostics.h"
#include "model/recorded.h"
#include "scopes/module_names.h"

namespace joulemap::ingest {

struct PlacedTrace {
  std::int64_t begin_ns = 0;  // of the first event
  std::int64_t end_ns = 0;    // of the last
  std::vector<Mark> marks;    // steps
  std::uint64_t kernels = 0;
  std::int64_t kernel_ns = 0;
  std::uint64_t kernels_without_place = 0;
  std::int64_t time_without_place_ns = 0;  // of those
  std::int64_t placed_thread_ns = 0;       // of threads, at places
  Diagnostics diagnostics;
};

// `sink` gets stretches of hundredths of a second: those of threads in order of time, then those of GPUs. The trace's events
// are used up: what placing finds out is kept in them.
// With more than one thread another prepares the kernels meanwhile; what comes out is the same, and `sink` is called by the
// caller's alone.
PlacedTrace place_trace(Trace& trace, const ModuleNames& modules, const std::function<void(Activity)>& sink,
                        std::size_t threads = 1);

}  // namespace joulemap::ingest

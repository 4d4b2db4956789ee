// SPDX-License-Identifier: Apache-2.0
//
// assign_scopes converts the events of a Trace into the Activity that a live capture of the same run would record:
// scopes with their exclusive times, kernels assigned to the scope that launched them, and training steps. Memory
// beyond the trace is a few bytes per event.
//
// - Events on a thread nest: a stack gives the innermost scope at each moment (thread_scope_tracker.h). Of two events
//   that overlap without nesting, one is cut.
// - A kernel belongs to the scope of the runtime call with its correlation id, else to the op with its external id.
//   Kernels with neither are unattributed and counted.
// - A backward op belongs to the layer of the forward op with its sequence number.
// - A name that contains its scope (XLA, TensorFlow) needs none of these rules.
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

struct ScopedTrace {
  std::int64_t begin_ns = 0;  // start of the first event, ns of the trace's clock
  std::int64_t end_ns = 0;    // end of the last event
  std::vector<Mark> marks;    // training steps
  std::uint64_t kernels = 0;
  std::int64_t kernel_time_ns = 0;
  std::uint64_t kernels_without_scope = 0;
  std::int64_t kernel_time_without_scope_ns = 0;
  std::int64_t thread_time_in_scopes_ns = 0;  // summed over all threads
  Diagnostics diagnostics;
};

// `sink` receives time slices of 10 ms or more: first those of threads in time order, then those of GPUs. The function
// removes events with impossible times from the trace and overwrites TraceEvent::detail with scopes.
// With `threads` > 1 a second thread prepares the kernels in parallel. The result is the same, and only the caller's
// thread calls `sink`.
ScopedTrace assign_scopes(Trace& trace, const scopes::ModuleNames& modules, const std::function<void(Activity)>& sink,
                          std::size_t threads = 1);

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// Placing: from the events of a Trace to the Activity that a live capture of the same run would have recorded: places with
// their own times, kernels that belong to the place that launched them, steps. Pure; memory beyond the trace is a few bytes
// an event.
//
// - On a thread events nest: a stack tells for each moment the innermost place. Siblings that overlap are cut.
// - A kernel belongs where the call of the runtime with its correlation was made; else to the op of its external id; else
//   to nothing, which is counted.
// - A backward op belongs to the layer of the forward op with its sequence number.
// - A name that carries its place (XLA's, TensorFlow's) needs none of this.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ingest/trace.h"
#include "model/activity.h"
#include "model/diagnostics.h"
#include "model/recorded.h"

namespace joulemap::ingest {

// The paths of a model's layers by class, in the order in which they are first called: what a PyTorch trace, which only
// says "nn.Module: Conv2d_3", cannot tell.
using ModuleNames = std::map<std::string, std::vector<std::string>, std::less<>>;

struct PlacedTrace {
  std::int64_t begin_ns = 0;  // of the first event
  std::int64_t end_ns = 0;    // of the last
  std::vector<Mark> marks;    // steps
  std::uint64_t kernels_without_place = 0;
  std::int64_t time_without_place_ns = 0;
  Diagnostics diagnostics;
};

// `sink` gets stretches of about a second in order of time.
PlacedTrace place_trace(const Trace& trace, const ModuleNames& modules, const std::function<void(Activity)>& sink);

}  // namespace joulemap::ingest

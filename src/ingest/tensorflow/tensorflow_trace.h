// SPDX-License-Identifier: Apache-2.0
//
// Reads traces of a TensorFlow 1 session (tf.compat.v1) into a Trace: timelines of timeline.Timeline (Chrome's JSON), or
// the RunMetadata (or StepStats) they are made from, distinguished by content. Both give the same events, but the second
// has nanoseconds and kernel names. Pure except for reading the files; single-threaded.
//
// - Each file is a step; several RunMetadata in one file are several steps.
// - Each row of "Compute" of a CPU or GPU is a node. Rows lack thread ids, so they are spread over as many threads as
//   needed to avoid overlap. For a GPU these rows are the launches.
// - Kernels are in rows of streams, which appear twice, ".../stream:all" and ".../stream:13". Individual streams are
//   used if present, else "all" plus the separate copies.
// - _SOURCE, _SINK and waiting for a stream are not operations. Tensors and allocators take no time.
// - A node's name gives its scope; operations that belong neither to gradients nor to an optimizer are forward. Its
//   input tensors are what the nodes before it put out: a RunMetadata contains them, a timeline with show_memory=True.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

Result<Trace> read_tensorflow_trace(const std::string& path);
// The files are steps of one session.
Result<Trace> read_tensorflow_traces(std::span<const std::string> paths);

// Fails if the bytes are not such a trace.
Result<Trace> read_tensorflow_trace_bytes(std::string_view bytes);

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// Reads a trace of a session of TensorFlow 1 (tf.compat.v1) into a Trace: the timeline that timeline.Timeline writes
// (Chrome's JSON), or the RunMetadata (or StepStats) it is made of, told apart by their content. Both give the same
// events, but the second knows nanoseconds and names of kernels. Pure but for reading the file; one thread.
//
// - Each row of a CPU's or a GPU's "Compute" is a node, on as many threads as are needed so that none overlap: the rows
//   do not tell their threads. Of a GPU these are the launches.
// - Kernels lie in rows of streams, which appear twice, ".../stream:all" and ".../stream:13": the streams one by one
//   are read where they are, else all at once and the copies beside.
// - _SOURCE, _SINK and waiting for a stream are no operations. Tensors and allocators take no time.
// - A node's name tells its place; what is neither of gradients nor of an optimizer is forward.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

Result<Trace> read_tensorflow_trace(const std::string& path);

// An error when the bytes are no such trace.
Result<Trace> read_tensorflow_trace_bytes(std::string_view bytes);

}  // namespace joulemap::ingest

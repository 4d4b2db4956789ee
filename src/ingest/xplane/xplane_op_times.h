// SPDX-License-Identifier: Apache-2.0
//
// Splits the time of a profiled step among phases, layers and operations, from the trace of the framework's own
// profiler. Only events that are operations count; waiting, scheduling and enclosing events do not. The time of an
// operation excludes nested operations. Pure.
#pragma once

#include <string_view>

#include "ingest/graph_names.h"
#include "ingest/op_times.h"

namespace joulemap::ingest {

// Reads the host's plane: TensorFlow's operations, stages of tf.data, XLA code for the CPU.
OpTimes read_xplane_op_times(std::string_view bytes, const GraphNames& names);

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// XPlaneAssembly: combines the segments of a profile that several threads read into one Trace. Segments arrive in any
// order and are merged in file order; names get numbers in order of first use. So the trace does not depend on the
// threads. Owned by the reader of the profile. One thread at a time calls `add`; `finish` is called after all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ingest/trace_builder.h"
#include "ingest/xplane/xplane_event_converter.h"
#include "model/diagnostics.h"

namespace joulemap::ingest {

class XPlaneAssembly {
 public:
  // `builder`: of the whole trace. `readers`: the readers of the segments.
  XPlaneAssembly(TraceBuilder& builder, std::vector<XPlaneEventConverter>& readers);

  // `number`: index of the segment in the file, from 0.
  void add(std::size_t number, std::size_t reader, XSegmentEvents events, Diagnostics damage);

  // Adds all events to the trace. Returns the diagnostics of damage.
  Diagnostics finish(std::size_t threads);

 private:
  // TableSizes: counts of entries in the tables of a reader. IndexMaps: indices of these entries in the trace.
  struct TableSizes {
    std::size_t names = 0, classes = 0, queues = 0, bytes = 0;
  };
  struct IndexMaps {
    std::vector<std::uint32_t> names, classes, queues, bytes;
  };
  struct Segment {
    std::size_t reader = 0;
    TableSizes table_sizes;  // entries of its reader after this segment
    XSegmentEvents events;
    Diagnostics damage;
  };
  struct OperationBegin {
    std::int64_t end_ns = 0;
    std::uint32_t name = 0;
  };

  void map_new_entries(const Segment& segment);
  void remap_indices(TraceEvent& event, const IndexMaps& numbers) const;
  void remap_event_indices(std::size_t first_segment, std::size_t stride);
  void add_cross_thread_ends(const XSegmentEvents& events);
  void add_graph_kernels(std::vector<GraphKernel> kernels);
  void add_steps(std::vector<XStep> candidates);

  TraceBuilder& builder_;
  std::vector<XPlaneEventConverter>& readers_;
  std::vector<IndexMaps> index_maps_;  // by reader
  std::vector<Segment> segments_;
};

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// XPlaneAssembly: makes one Trace of the segments of a profile that several threads read. They come in any order; at the end
// they are taken in that of the file, and what each was the first to name gets the next numbers: the trace is the same
// whatever thread read what. Owned by who reads the profile; `add` is of one thread at a time, `finish` comes after all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ingest/trace_builder.h"
#include "ingest/xplane/xplane_events.h"
#include "model/diagnostics.h"

namespace joulemap::ingest {

class XPlaneAssembly {
 public:
  // `builder`: of the whole trace. `readers`: those that read the segments.
  XPlaneAssembly(TraceBuilder& builder, std::vector<XPlaneEvents>& readers);

  // `number`: of the segment in the file, from 0.
  void add(std::size_t number, std::size_t reader, XSegmentEvents events, Diagnostics damage);

  // All events are in the trace then; what was damaged is told.
  Diagnostics finish(std::size_t threads);

 private:
  // How many of a reader's there are, or what they are called in the trace.
  struct Sizes {
    std::size_t names = 0, classes = 0, queues = 0, bytes = 0;
  };
  struct Numbers {
    std::vector<std::uint32_t> names, classes, queues, bytes;
  };
  struct Segment {
    std::size_t reader = 0;
    Sizes known;  // to its reader, behind it
    XSegmentEvents events;
    Diagnostics damage;
  };
  struct Begun {
    std::int64_t end_ns = 0;
    std::uint32_t name = 0;
  };

  void take_numbers(const Segment& segment);
  void renumber(TraceEvent& event, const Numbers& numbers) const;
  void renumber_events(std::size_t first, std::size_t stride);
  void continue_operations(const XSegmentEvents& events);
  void add_graphs(std::vector<GraphKernel> kernels);

  TraceBuilder& builder_;
  std::vector<XPlaneEvents>& readers_;
  std::vector<Numbers> numbers_;  // by reader
  std::vector<Segment> segments_;
};

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// XPlaneEventConverter: converts the events of a profile's segments to TraceEvents. Its own TraceBuilder numbers names,
// classes and queues; xplane_assembly.h converts these indices to those of the whole trace. One thread per object; the
// profile's bytes must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ingest/trace_builder.h"
#include "ingest/xplane/graph_launches.h"
#include "ingest/xplane/string_view_cache.h"
#include "ingest/xplane/xplane_line_selector.h"
#include "ingest/xplane/xplane_operations.h"
#include "ingest/xplane/xplane_reader.h"
#include "ingest/xplane/xplane_steps.h"

namespace joulemap::ingest {

// Results of a segment besides its counts, merged in file order.
struct XSegmentEvents {
  struct OperationBegin {
    std::int64_t id = 0;  // equals that of its OperationEnd
    std::int64_t end_ns = 0;
    std::uint32_t name = 0;
  };
  struct OperationEnd {
    std::int64_t id = 0;
    std::int64_t end_ns = 0;
    std::uint32_t track = 0;
  };
  std::vector<std::vector<TraceEvent>> blocks;
  std::vector<OperationBegin> open_operations;  // operations that may end on another thread
  std::vector<OperationEnd> operation_ends;     // ends of operations, on another thread than they began
  std::vector<GraphKernel> graph_kernels;
  std::vector<XStep> steps;  // events that may be steps
};

class XPlaneEventConverter : public XEventVisitor {
 public:
  void add_program(std::string_view name, std::string_view hlo_proto) { operations_.add_program(name, hlo_proto); }

  // Starts a segment of this line. `expected_event_count`: approximate count of its events, to reserve memory; 0 if unknown.
  void begin_segment(const XLineContext& line, std::size_t expected_event_count);
  void on_event(const XEvent& event) override;
  void on_skipped_event() override { builder_.add_skipped_events(); }
  void on_damaged_event() override { builder_.add_dropped_events(kDamagedEventsReason); }
  // Returns the results of the current segment.
  XSegmentEvents take_segment();

  // Defines the indices in the events; does not contain the blocks already taken.
  TraceBuilder& builder() { return builder_; }
  XPlaneOperations& operations() { return operations_; }

 private:
  struct EventMeaning {
    bool is_included = false;  // false: an internal event of the runtime, which is skipped
    EventKind kind = EventKind::op;
    std::uint32_t name = 0;
  };
  struct KernelClassHash {
    std::size_t operator()(const std::pair<std::string_view, std::string_view>& key) const {
      return std::hash<std::string_view>()(key.first) * 31 + std::hash<std::string_view>()(key.second);
    }
  };

  void add_event_without_stats(const XEvent& event);
  void add_thread_event(const XEvent& event);
  void add_gpu_event(const XEvent& event);
  bool add_step(const XEvent& event);
  EventMeaning find_event_meaning(const XEvent& event);
  std::uint32_t intern_operation_name(std::uint32_t operation);
  std::uint32_t intern_operation_name(std::string_view text);
  std::uint32_t intern_kernel_class(std::string_view name, std::string_view kernel_details);
  std::uint32_t intern_event_queue(const XEvent& event);
  std::uint32_t queue_of_context(std::uint32_t context);

  TraceBuilder builder_{"xplane"};
  XPlaneOperations operations_{{}};
  XLineContext line_context_;
  XSegmentEvents segment_;
  std::vector<std::uint32_t> name_by_operation_;                 // by number in operations_: index in the trace's names
  std::vector<std::pair<std::uint32_t, std::uint32_t>> queues_;  // pairs of context and queue in the current line
  std::unordered_map<std::string_view, std::uint32_t> texts_;
  std::vector<std::optional<EventMeaning>> meaning_by_name_;  // of the current plane, by name and is_input_pipeline
  std::unordered_map<std::pair<std::string_view, std::string_view>, std::uint32_t, KernelClassHash>
      kernel_class_indices_;
  StringViewCache<2> recent_kernel_classes_;
  std::string_view last_cuda_context_;  // context of the segment's previous event, if it is a string
  std::uint32_t last_queue_ = 0;
};

}  // namespace joulemap::ingest

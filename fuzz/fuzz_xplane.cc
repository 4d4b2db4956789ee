// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the readers of XPlane traces, ONNX Runtime profiles, HLO programs and sidecar files, and the parsers of
// operation names: no crash, no invalid duration, no negative time of an operation, and the same result with one and
// two threads.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "check_trace.h"
#include "ingest/onnxruntime/onnxruntime_op_times.h"
#include "ingest/trace_sidecar.h"
#include "ingest/xplane/hlo_program.h"
#include "ingest/xplane/xplane_op_times.h"
#include "ingest/xplane/xplane_reader.h"
#include "ingest/xplane/xplane_trace.h"
#include "scopes/op_names.h"

namespace {

class EventChecker : public joulemap::ingest::XPlaneVisitor {
 public:
  bool on_plane(const joulemap::ingest::XPlane&) override { return true; }
  bool on_line(const joulemap::ingest::XLine&) override { return true; }
  void on_event(const joulemap::ingest::XEvent& event) override {
    JOULEMAP_CHECK(event.duration_ps >= 0, "an event of negative length");
    static_cast<void>(event.find_text(joulemap::ingest::XStatName::hlo_op));
    static_cast<void>(event.find_integer(joulemap::ingest::XStatName::step_num));
  }
};

void check_op_times(const joulemap::ingest::OpTimes& op_times) {
  for (const joulemap::ingest::OpTime& share : op_times.op_times) JOULEMAP_CHECK(share.time_ns >= 0, "negative time");
  JOULEMAP_CHECK(op_times.time_with_scope_ns() <= op_times.time_ns(), "more is placed than there is");
}

// The result must not depend on the number of threads.
void check_same_trace(const joulemap::Result<joulemap::ingest::Trace>& a,
                      const joulemap::Result<joulemap::ingest::Trace>& b) {
  JOULEMAP_CHECK(a.has_value() == b.has_value(), "a trace that one thread reads and two do not");
  if (!a) return;
  std::size_t events = 0;
  std::size_t event_count_b = 0;
  for (const auto& block : a->event_blocks) events += block.size();
  for (const auto& block : b->event_blocks) event_count_b += block.size();
  JOULEMAP_CHECK(events == event_count_b && a->read_event_count == b->read_event_count,
                 "events that one thread finds and two do not");
  JOULEMAP_CHECK(a->names.size() == b->names.size() && a->kernel_classes.size() == b->kernel_classes.size(),
                 "names that differ");
  JOULEMAP_CHECK(a->diagnostics.list().size() == b->diagnostics.list().size(), "damage that differs");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace joulemap::ingest;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  EventChecker checks;
  read_xplane(bytes, checks);
  const joulemap::Result<Trace> trace = read_xplane_trace_bytes(bytes, {.threads = 1});
  check_trace(trace);
  check_same_trace(trace, read_xplane_trace_bytes(bytes, {.threads = 2, .segment_bytes = 16}));
  GraphNames names;
  names.scope_by_operation = {{"a", {"", "b"}}};
  check_op_times(read_xplane_op_times(bytes, names));
  check_op_times(read_onnxruntime_op_times(bytes));
  static_cast<void>(HloProgram::read(bytes));
  static_cast<void>(parse_trace_sidecar(bytes));
  static_cast<void>(joulemap::scopes::scope_of_xla_op(bytes, true));
  static_cast<void>(joulemap::scopes::scope_of_tensorflow_op(bytes, {}, {{"a", {"", "b"}}}));
  static_cast<void>(joulemap::scopes::scope_of_onnx_node(bytes, {}));
  return 0;
}

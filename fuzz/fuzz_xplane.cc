// SPDX-License-Identifier: Apache-2.0
//
// The readers of frameworks' traces on any bytes, and those of operation names on any text: none may crash, no event may
// have a length that cannot be, and no operation may have less time than none.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "check_trace.h"
#include "ingest/onnxruntime/onnxruntime_shares.h"
#include "ingest/op_names.h"
#include "ingest/trace_note.h"
#include "ingest/xplane/hlo_program.h"
#include "ingest/xplane/xplane_reader.h"
#include "ingest/xplane/xplane_shares.h"
#include "ingest/xplane/xplane_trace.h"

namespace {

class Checks : public joulemap::ingest::XPlaneVisitor {
 public:
  bool on_plane(const joulemap::ingest::XPlane&) override { return true; }
  bool on_line(const joulemap::ingest::XLine&) override { return true; }
  void on_event(const joulemap::ingest::XEvent& event) override {
    JOULEMAP_CHECK(event.duration_ps >= 0, "an event of negative length");
    static_cast<void>(event.text(joulemap::ingest::XStatName::hlo_op));
    static_cast<void>(event.integer(joulemap::ingest::XStatName::step_num));
  }
};

void check_shares(const joulemap::ingest::TraceShares& shares) {
  for (const joulemap::ingest::OpShare& share : shares.shares) JOULEMAP_CHECK(share.time_ns >= 0, "negative time");
  JOULEMAP_CHECK(shares.placed_ns() <= shares.time_ns(), "more is placed than there is");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace joulemap::ingest;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Checks checks;
  read_xplane(bytes, checks);
  check_trace(read_xplane_trace_bytes(bytes));
  check_shares(shares_of_xplane(bytes, {{"a", {"", "b"}}}));
  check_shares(shares_of_onnxruntime(bytes));
  static_cast<void>(HloProgram::read(bytes));
  static_cast<void>(read_trace_note(bytes));
  static_cast<void>(place_of_xla_op(bytes, true));
  static_cast<void>(place_of_tensorflow_op(bytes, {}, {{"a", {"", "b"}}}));
  static_cast<void>(place_of_onnx_node(bytes, {}));
  return 0;
}

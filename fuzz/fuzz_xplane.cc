// SPDX-License-Identifier: Apache-2.0
//
// The reader of XPlane traces on any bytes, and the readers of operation names on any text: none may crash, and no event may
// have a length that cannot be.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "ingest/op_names.h"
#include "ingest/xplane/xplane_reader.h"

namespace {

class Checks : public joulemap::ingest::XPlaneVisitor {
 public:
  bool on_plane(const joulemap::ingest::XPlane&) override { return true; }
  bool on_line(const joulemap::ingest::XLine&) override { return true; }
  void on_event(const joulemap::ingest::XEvent& event) override {
    JOULEMAP_CHECK(event.duration_ps >= 0, "an event of negative length");
    static_cast<void>(event.text("hlo_op"));
    static_cast<void>(event.integer("step_num"));
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace joulemap::ingest;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Checks checks;
  read_xplane(bytes, checks);
  static_cast<void>(place_of_xla_op(bytes, true));
  static_cast<void>(place_of_tensorflow_op(bytes, {}, {{"a", {"", "b"}}}));
  static_cast<void>(place_of_onnx_node(bytes, {}));
  return 0;
}

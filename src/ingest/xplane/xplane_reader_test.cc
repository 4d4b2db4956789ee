// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/protobuf.h"

namespace joulemap::ingest {
namespace {

using formats::ProtobufWriter;

constexpr std::int64_t kBegin_ns = 1'700'000'000'000'000'000;

ProtobufWriter named(std::int64_t id, std::string_view name) {
  return ProtobufWriter().add(1, id).add(2, ProtobufWriter().add(1, id).add(2, name));
}

// A host plane with one thread, whose operation is named by a reference, and a GPU with a stream and a derived line.
std::string xspace_bytes() {
  ProtobufWriter event;
  event.add(1, 1).add(2, std::int64_t{5'000'000}).add(3, std::int64_t{2'500'000});
  event.add(4, ProtobufWriter().add(1, 10).add(7, 12)).add(4, ProtobufWriter().add(1, 11).add(4, std::int64_t{-3}));
  ProtobufWriter host;
  host.add(1, 1).add(2, "/host:CPU");
  host.add(3, ProtobufWriter().add(1, 77).add(2, "worker").add(3, kBegin_ns).add(4, event));
  ProtobufWriter operation;
  operation.add(1, 1).add(2, "MatMul").add(4, "matrix product").add(5, ProtobufWriter().add(1, 13).add(2, 1.5));
  host.add(4, ProtobufWriter().add(1, 1).add(2, operation));
  host.add(5, named(10, "tf_op")).add(5, named(11, "step_num")).add(5, named(12, "dense/MatMul"));
  host.add(5, named(13, "flops"));
  ProtobufWriter gpu;
  gpu.add(2, "/device:GPU:0");
  gpu.add(3, ProtobufWriter().add(2, "Stream #7").add(4, ProtobufWriter().add(1, 9).add(3, 8)));
  gpu.add(3, ProtobufWriter().add(2, "XLA Modules").add(4, ProtobufWriter().add(1, 9).add(3, 8)));
  ProtobufWriter xspace_proto;
  xspace_proto.add(1, host).add(1, gpu).add(3, "events were dropped");
  return xspace_proto.bytes();
}

class CollectingVisitor : public XPlaneVisitor {
 public:
  bool on_plane(const XPlane& plane) override {
    planes.emplace_back(plane.name);
    kinds.push_back(plane.kind);
    return true;
  }
  bool on_line(const XLine& line) override {
    lines.emplace_back(line.name);
    return !line.is_derived;
  }
  void on_event(const XEvent& event) override {
    names.emplace_back(event.name);
    begins_ns.push_back(event.begin_ns);
    durations_ps.push_back(event.duration_ps);
    ops.emplace_back(event.find_text(XStatName::tf_op));
    steps.push_back(event.find_integer(XStatName::step_num));
    stats.push_back(event.stats.size());
  }
  std::vector<std::string> planes, lines, names, ops;
  std::vector<XPlaneKind> kinds;
  std::vector<std::int64_t> begins_ns, durations_ps;
  std::vector<std::optional<std::int64_t>> steps;
  std::vector<std::size_t> stats;
};

TEST(XPlaneReader, ReadsNameTimeAndValuesOfEachEvent) {
  const std::string bytes = xspace_bytes();
  CollectingVisitor visitor;
  const Diagnostics diagnostics = read_xplane(bytes, visitor);
  ASSERT_GE(visitor.names.size(), 1u);
  EXPECT_EQ(visitor.names[0], "MatMul");
  EXPECT_EQ(visitor.begins_ns[0], kBegin_ns + 5000);
  EXPECT_EQ(visitor.durations_ps[0], 2'500'000);
  EXPECT_EQ(visitor.ops[0], "dense/MatMul");
  EXPECT_EQ(visitor.steps[0], -3);
  EXPECT_EQ(visitor.stats[0], 2u);  // tf_op and step_num; flops, a stat of the event's name, is not in XStatName
  EXPECT_TRUE(diagnostics.contains("framework_profiler"));
}

TEST(XPlaneReader, DistinguishesHostDeviceAndDerivedLines) {
  const std::string bytes = xspace_bytes();
  CollectingVisitor visitor;
  read_xplane(bytes, visitor);
  EXPECT_EQ(visitor.planes, (std::vector<std::string>{"/host:CPU", "/device:GPU:0"}));
  EXPECT_EQ(visitor.kinds, (std::vector<XPlaneKind>{XPlaneKind::host, XPlaneKind::device}));
  EXPECT_EQ(visitor.lines, (std::vector<std::string>{"worker", "Stream #7", "XLA Modules"}));
  EXPECT_EQ(visitor.names.size(), 2u);  // the derived line's event is left out
  EXPECT_EQ(visitor.begins_ns[1], 0);
}

TEST(XPlaneReader, SkipsUnwantedPlanes) {
  class PlaneSkippingVisitor : public CollectingVisitor {
    bool on_plane(const XPlane&) override { return false; }
  };
  const std::string bytes = xspace_bytes();
  PlaneSkippingVisitor visitor;
  read_xplane(bytes, visitor);
  EXPECT_TRUE(visitor.lines.empty());
}

TEST(XPlaneReader, AFileCutAnywhereGivesADiagnosticAndItsContent) {
  const std::string bytes = xspace_bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CollectingVisitor cut_file_visitor;
    read_xplane(std::string_view(bytes).substr(0, size), cut_file_visitor);
    EXPECT_LE(cut_file_visitor.names.size(), 2u);
  }
  CollectingVisitor visitor;
  EXPECT_TRUE(read_xplane(std::string_view(bytes).substr(0, bytes.size() / 2), visitor).contains("damaged_trace"));
}

TEST(XPlaneReader, DamageInANameTableDoesNotAffectOtherPlanes) {
  std::string bytes = xspace_bytes();
  const std::size_t name = bytes.find("matrix product");
  bytes[name - 1] = static_cast<char>(0x7F);  // the display name's length now exceeds its message
  CollectingVisitor visitor;
  const Diagnostics diagnostics = read_xplane(bytes, visitor);
  EXPECT_TRUE(diagnostics.contains("damaged_trace"));
  EXPECT_EQ(visitor.planes.size(), 2u);
}

TEST(XPlaneReader, TimesBeyondAllBoundsDoNotOverflow) {
  ProtobufWriter event;
  event.add(1, 1).add(2, INT64_MAX).add(3, 5);
  ProtobufWriter plane;
  plane.add(2, "/host:CPU").add(3, ProtobufWriter().add(3, INT64_MAX).add(4, event));
  const std::string bytes = ProtobufWriter().add(1, plane).bytes();
  CollectingVisitor visitor;
  read_xplane(bytes, visitor);
  ASSERT_EQ(visitor.begins_ns.size(), 1u);
  EXPECT_EQ(visitor.begins_ns[0], INT64_MAX);
}

TEST(XPlaneReader, DropsAnEventOfImpossibleLength) {
  for (const std::int64_t duration_ps : {std::int64_t{-1}, INT64_MAX}) {
    ProtobufWriter plane;
    plane.add(2, "/host:CPU").add(3, ProtobufWriter().add(4, ProtobufWriter().add(1, 1).add(3, duration_ps)));
    const std::string bytes = ProtobufWriter().add(1, plane).bytes();
    CollectingVisitor visitor;
    EXPECT_TRUE(read_xplane(bytes, visitor).contains("damaged_trace"));
    EXPECT_TRUE(visitor.names.empty());
  }
}

TEST(XPlaneReader, ReturnsProgramsBeforePlanes) {
  class ProgramVisitor : public CollectingVisitor {
    void on_program(std::string_view name, std::string_view proto) override {
      EXPECT_TRUE(planes.empty());
      names.push_back(std::string(name) + "=" + std::string(proto));
    }
  };
  ProtobufWriter program;
  program.add(1, 4).add(2, "jit_step(182)").add(5, ProtobufWriter().add(1, 3).add(6, "proto"));
  ProtobufWriter metadata;
  metadata.add(2, "/host:metadata").add(4, ProtobufWriter().add(1, 4).add(2, program)).add(5, named(3, "Hlo Proto"));
  const std::string bytes = xspace_bytes() + ProtobufWriter().add(1, metadata).bytes();
  ProgramVisitor visitor;
  read_xplane(bytes, visitor);
  ASSERT_FALSE(visitor.names.empty());
  EXPECT_EQ(visitor.names[0], "jit_step(182)=proto");
}

}  // namespace
}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
#include "ingest/framework_traces.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "formats/protobuf.h"
#include "ingest/trace_sidecar.h"
#include "support/temporary_directory.h"

namespace joulemap::ingest {
namespace {

using formats::ProtobufWriter;

// A trace with one TensorFlow operation of this duration.
std::string trace(const std::string& node, const std::string& type, std::int64_t time_ns) {
  ProtobufWriter name;
  name.add(2, node + ":" + type).add(4, type);
  ProtobufWriter plane;
  plane.add(2, "/host:CPU");
  plane.add(3, ProtobufWriter().add(2, "worker").add(4, ProtobufWriter().add(1, 1).add(3, time_ns * 1000)));
  plane.add(4, ProtobufWriter().add(1, 1).add(2, name));
  return ProtobufWriter().add(1, plane).bytes();
}

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

class FrameworkTraces : public testing::Test {
 protected:
  FrameworkTraces() : folder_(directory_.path() + "/traces") { std::filesystem::create_directory(folder_); }

  TemporaryDirectory directory_;
  std::string folder_;
};

TEST_F(FrameworkTraces, FrameworkTracesBecomeSharesOfTheScopeInTheSidecar) {
  write(folder_ + "/7-1.xplane.pb", trace("model_1/dense_1/MatMul", "MatMul", 500));
  write(folder_ + "/7-1.meta", "coarse\tmode\ttrain\nscope\tmodel_1/dense_1\t\tdense\n");
  write(folder_ + "/7-2.xplane.pb", trace("model_1/dense_1/MatMul", "MatMul", 300));
  write(folder_ + "/7-2.meta", "coarse\tmode\ttrain\nscope\tmodel_1/dense_1\t\tdense\n");
  const FrameworkActivity framework_activity = read_framework_traces(folder_);
  ASSERT_EQ(framework_activity.activity.shares.size(), 1u);
  EXPECT_EQ(framework_activity.activity.shares[0].time_ns, 800);
  EXPECT_EQ(framework_activity.activity.shares[0].count, 2u);
  ASSERT_EQ(framework_activity.activity.scopes.size(), 5u);
  EXPECT_EQ(framework_activity.activity.scopes[0].name, "train");
  EXPECT_EQ(framework_activity.activity.scopes[0].id, framework_activity.activity.shares[0].coarse_scope);
  EXPECT_EQ(framework_activity.activity.scopes[1].name, "forward");
  EXPECT_EQ(framework_activity.activity.scopes[2].name, "dense");
  EXPECT_EQ(framework_activity.activity.scopes[2].kind, ScopeKind::module);
  EXPECT_EQ(framework_activity.activity.scopes[3].name, "MatMul");
  EXPECT_EQ(framework_activity.activity.scopes[4].name, "model_1/dense_1/MatMul");
  EXPECT_EQ(framework_activity.activity.scopes[4].kind, ScopeKind::tensors);
  EXPECT_EQ(framework_activity.activity.scopes[4].id, framework_activity.activity.shares[0].scope);
  EXPECT_TRUE(framework_activity.diagnostics.contains("layers_from_profiler"));
}

TEST_F(FrameworkTraces, AFunctionThatComputesGradientsTrains) {
  write(folder_ + "/7-1.xplane.pb", trace("gradient_tape/model_1/dense_1/MatMul", "MatMul", 500));
  write(folder_ + "/7-1.meta", "coarse\tregion\tstep\n");
  const FrameworkActivity framework_activity = read_framework_traces(folder_);
  ASSERT_GE(framework_activity.activity.scopes.size(), 3u);
  EXPECT_EQ(framework_activity.activity.scopes[0].name, "step");
  EXPECT_EQ(framework_activity.activity.scopes[1].name, "train");
  EXPECT_EQ(framework_activity.activity.scopes[1].kind, ScopeKind::mode);
  EXPECT_EQ(framework_activity.activity.scopes[2].name, "backward");
}

TEST_F(FrameworkTraces, FrameworkTracesAreRemovedAfterReading) {
  write(folder_ + "/7-1.xplane.pb", "damaged");
  write(folder_ + "/7-1.meta", "coarse\tmode\ttrain\n");
  EXPECT_TRUE(read_framework_traces(folder_).diagnostics.contains("damaged_trace"));
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(FrameworkTraces, FrameworkTracesReportAMissingTrace) {
  write(folder_ + "/7-1.meta", "coarse\tmode\ttrain\n");
  EXPECT_TRUE(read_framework_traces(folder_).diagnostics.contains("trace_not_read"));
}

TEST_F(FrameworkTraces, FrameworkTracesOmitAnUnfinishedTrace) {
  write(folder_ + "/7-1.xplane.pb", trace("model_1/dense_1/MatMul", "MatMul", 500));
  EXPECT_TRUE(read_framework_traces(folder_).activity.empty());
}

TEST_F(FrameworkTraces, FrameworkTracesAreEmptyWithoutAFolder) {
  const FrameworkActivity framework_activity = read_framework_traces(folder_ + "/none");
  EXPECT_TRUE(framework_activity.activity.empty());
  EXPECT_TRUE(framework_activity.diagnostics.empty());
}

TEST(TraceSidecar, ReadsShapesAndFusedOperations) {
  const TraceSidecar note =
      parse_trace_sidecar("tensors\ta/b\t[2,3]\nfused\ta/Relu\ta/b/MatMul\t[2]\ntensors\tshort\n");
  EXPECT_EQ(note.graph_names.tensors_by_operation.at("a/b"), "[2,3]");
  EXPECT_EQ(note.graph_names.tensors_by_operation.size(), 1u);
  EXPECT_EQ(note.graph_names.fused_operations.at("a/Relu").first_operation, "a/b/MatMul");
  EXPECT_EQ(note.graph_names.fused_operations.at("a/Relu").tensors, "[2]");
}

TEST(TraceSidecar, IgnoresUnknownEntries) {
  const TraceSidecar note =
      parse_trace_sidecar("coarse\tmode\ttrain\ncoarse\tcolour\tred\nfuture\tx\nscope\ta/b\toptimizer\tc\n\n");
  ASSERT_EQ(note.coarse_scope.size(), 1u);
  EXPECT_EQ(note.coarse_scope[0].second, "train");
  ASSERT_EQ(note.graph_names.scope_by_operation.size(), 1u);
  EXPECT_EQ(note.graph_names.scope_by_operation.at("a/b").phase, "optimizer");
  EXPECT_EQ(note.graph_names.scope_by_operation.at("a/b").module, "c");
}

}  // namespace
}  // namespace joulemap::ingest

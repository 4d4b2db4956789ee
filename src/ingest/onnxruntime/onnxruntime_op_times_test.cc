// SPDX-License-Identifier: Apache-2.0
#include "ingest/onnxruntime/onnxruntime_op_times.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace joulemap::ingest {
namespace {

std::string node(const std::string& name, const std::string& op, int time_us) {
  return fmt::format(R"({{"cat":"Node","dur":{},"ts":1,"ph":"X","name":"{}","args":{{"op_name":"{}"}}}},)", time_us,
                     name, op);
}

const std::string kModelRunEvent = R"({"cat":"Session","dur":9,"ts":1,"ph":"X","name":"model_run","args":{}},)";

std::string make_profile_json(std::string events) {
  events.pop_back();  // the last comma
  return "[" + events + "]";
}

TEST(OnnxRuntimeOpTimes, KernelTimesBelongToTheirNodes) {
  const OpTimes op_times = read_onnxruntime_op_times(make_profile_json(
      node("/fc/Gemm_kernel_time", "Gemm", 7) + node("/fc/Gemm_fence_before", "Gemm", 90) + kModelRunEvent));
  ASSERT_EQ(op_times.op_times.size(), 1u);
  EXPECT_EQ(op_times.op_times[0].scope, (scopes::OpScope{"forward", "fc", "Gemm"}));
  EXPECT_EQ(op_times.op_times[0].time_ns, 7000);
}

TEST(OnnxRuntimeOpTimes, ExcludesTheFirstOfSeveralRuns) {
  const std::string runs = node("/a/Relu_kernel_time", "Relu", 1000) + kModelRunEvent +
                           node("/a/Relu_kernel_time", "Relu", 2) + kModelRunEvent +
                           node("/a/Relu_kernel_time", "Relu", 3) + kModelRunEvent;
  const OpTimes op_times = read_onnxruntime_op_times(make_profile_json(runs));
  ASSERT_EQ(op_times.op_times.size(), 1u);
  EXPECT_EQ(op_times.op_times[0].time_ns, 5000);
  EXPECT_EQ(op_times.op_times[0].count, 2u);
}

TEST(OnnxRuntimeOpTimes, ATruncatedProfileGivesADiagnosticAndItsContent) {
  const OpTimes op_times = read_onnxruntime_op_times("[" + node("/fc/Gemm_kernel_time", "Gemm", 7) + "{\"cat\":");
  EXPECT_TRUE(op_times.diagnostics.contains("damaged_trace"));
  EXPECT_EQ(op_times.op_times.size(), 1u);
}

}  // namespace
}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
#include "ingest/onnxruntime/onnxruntime_trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "support/events_of.h"
#include "support/temporary_directory.h"

namespace joulemap::ingest {
namespace {

std::string event(const std::string& category, const std::string& name, int start_us, int time_us,
                  const std::string& arguments = "") {
  return fmt::format(
      R"({{"cat" : "{}","pid" :12,"tid" :34,"dur" :{},"ts" :{},"ph" : "X","name" :"{}","args" : {{{}}}}})", category,
      time_us, start_us, name, arguments);
}

const std::string kNodeEvents =
    event("Node", "/fc/Gemm_kernel_time", 100, 7, R"("op_name" : "Gemm", "list": [{"float":[1]},{"float":[2]}])");
const std::string kModelRunEvent = event("Session", "model_run", 90, 30);

Trace read_expected_trace(const std::string& text) {
  Result<Trace> trace = read_onnxruntime_trace_text(text);
  EXPECT_TRUE(trace) << trace.error().message;
  return trace ? *std::move(trace) : Trace();
}

TEST(OnnxRuntimeTrace, ANodeIsAnOperationInItsScope) {
  const Trace trace = read_expected_trace("[\n" + kNodeEvents + ",\n" + event("Node", "/fc/Gemm_fence_before", 99, 1) +
                                          "," + kModelRunEvent + "\n]");
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, EventKind::op);
  EXPECT_EQ(events[0].start_ns, 100'000);
  EXPECT_EQ(events[0].duration_ns, 7'000);
  EXPECT_EQ(trace.names.at(events[0].name_index).text, "/fc/Gemm");
  EXPECT_EQ(trace.names.at(events[0].name_index).scope, (scopes::OpScope{"forward", "fc", "Gemm"}));
  EXPECT_EQ(trace.threads.at(events[0].track_index).thread, 34);
  EXPECT_EQ(trace.process, 12);
  EXPECT_EQ(trace.clock, TraceClock::since_start);
  EXPECT_EQ(trace.read_event_count, 3u);
  EXPECT_TRUE(trace.diagnostics.empty());
}

TEST(OnnxRuntimeTrace, ANodeAndItsKernelsHaveItsInputs) {
  const auto node = [](const char* name, const char* inputs) {
    return event("Node", std::string(name) + "_kernel_time", 1, 7,
                 std::string(R"("op_name" : "Gemm", "input_type_shape" : )") + inputs);
  };
  const auto kernel = [](const char* parent) {
    return event("Kernel", "sgemm", 3, 3, std::string(R"("op_name" : "Gemm", "parent_name" : ")") + parent + "\"");
  };
  const Trace trace = read_expected_trace(
      "[" + node("/a/Gemm", R"([{"float":[1,2]},{"int64":[2]}])") + "," + node("/b/Gemm", R"([{"float":[1]}])") + "," +
      node("/b/Gemm", R"([{"float":[2]}])") + "," + kernel("/a/Gemm_kernel_time") + "," + kernel("/b/Gemm") + "]");
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(trace.names.at(events[0].name_index).scope.tensors, "[1,2] int64[2]");
  EXPECT_EQ(trace.names.at(events[2].name_index).scope.tensors, "[2]");
  EXPECT_EQ(events[3].external_id, events[0].name_index + 1);
  EXPECT_EQ(trace.names.at(events[4].external_id - 1).scope.tensors, "");  // ambiguous: its node ran with two inputs
}

TEST(OnnxRuntimeTrace, ARunIsAStep) {
  const Trace trace = read_expected_trace("[" + kModelRunEvent + "," + kModelRunEvent + "]");
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].kind, EventKind::annotation);
  EXPECT_EQ(trace.names.at(events[1].name_index).text, "ProfilerStep#1");
}

TEST(OnnxRuntimeTrace, AKernelIdentifiesItsNode) {
  const std::string kernel =
      event("Kernel", "sgemm", 101, 3,
            R"("stream":"13","grid_x":"4","grid_y":"1","grid_z":"1","block_x":"64","block_y":"1","block_z":"1",)"
            R"("op_name":"Gemm","parent_name":"/fc/Gemm_kernel_time")");
  const Trace trace = read_expected_trace("[" + kNodeEvents + "," + kernel + "," + event("Kernel", "orphan", 1, 1) +
                                          "," + event("Kernel", "MemcpyHostToDevice", 1, 1) + "]");
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_TRUE(trace.gpu_events_identify_ops);
  EXPECT_EQ(events[1].external_id, events[0].name_index + 1);
  EXPECT_EQ(trace.kernel_classes.at(events[1].name_index).name, "sgemm");
  EXPECT_EQ(trace.kernel_classes.at(events[1].name_index).block[0], 64u);
  EXPECT_EQ(trace.kernel_queues.at(events[1].track_index).stream, 13u);
  EXPECT_EQ(events[2].external_id, 0u);
  EXPECT_EQ(events[3].kind, EventKind::copy);
  EXPECT_EQ(trace.kernel_classes.at(events[3].name_index).name, "HtoD");
}

TEST(OnnxRuntimeTrace, ATruncatedProfileGivesItsContent) {
  const Trace trace = read_expected_trace("[\n" + kNodeEvents + ",\n" + kModelRunEvent.substr(0, 60));
  EXPECT_EQ(collect_events(trace).size(), 1u);
  EXPECT_TRUE(trace.diagnostics.contains("trace_cut"));
  EXPECT_EQ(trace.dropped_event_count, 1u);
}

TEST(OnnxRuntimeTrace, CountsADamagedEventAndReadsTheNext) {
  const std::string damaged_event = event("Node", "a \"quoted\" name_kernel_time", 1, 1);
  const Trace trace =
      read_expected_trace("[" + kNodeEvents + "," + damaged_event + "," + kNodeEvents + "," + kNodeEvents + "]");
  EXPECT_EQ(collect_events(trace).size(), 3u);
  EXPECT_EQ(trace.dropped_event_count, 1u);
  EXPECT_TRUE(trace.diagnostics.contains("events_dropped"));
}

TEST(OnnxRuntimeTrace, DropsInvalidTimes) {
  const Trace trace = read_expected_trace(
      "[" + event("Node", "a_kernel_time", 5, -3) + R"(,{"cat":"Node","ph":"X","name":"b_kernel_time"},)" +
      R"({"cat":"Node","ph":"X","name":"c_kernel_time","ts":1e300,"dur":1},)" + kNodeEvents + "]");
  EXPECT_EQ(collect_events(trace).size(), 1u);
  EXPECT_EQ(trace.dropped_event_count, 3u);
}

TEST(OnnxRuntimeTrace, AcceptsAnObjectAroundTheArray) {
  EXPECT_EQ(
      collect_events(read_expected_trace(R"({"displayTimeUnit": "ms", "traceEvents": [)" + kNodeEvents + "]}")).size(),
      1u);
}

TEST(OnnxRuntimeTrace, ReportsAFullProfile) {
  std::string text = "[";
  const std::string session_event = R"({"cat":"Session","ph":"X","name":"x","ts":1,"dur":1},)";
  for (int i = 0; i < 999'999; ++i) text += session_event;
  EXPECT_FALSE(read_expected_trace(text + "]").diagnostics.contains("trace_full"));
  EXPECT_TRUE(read_expected_trace(text + kNodeEvents + "]").diagnostics.contains("trace_full"));
}

TEST(OnnxRuntimeTrace, OtherContentIsAnErrorWithARemedy) {
  for (const char* text : {"", "hello", "{}", "[1, 2]", R"([{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1}])"}) {
    const Result<Trace> trace = read_onnxruntime_trace_text(text);
    ASSERT_FALSE(trace) << text;
    EXPECT_FALSE(trace.error().remedy.empty());
  }
  const TemporaryDirectory folder;
  EXPECT_FALSE(read_onnxruntime_trace(folder.path() + "/none.json"));
  EXPECT_TRUE(read_onnxruntime_trace(folder.write("p.json", "[" + kNodeEvents + "]")));
}

}  // namespace
}  // namespace joulemap::ingest

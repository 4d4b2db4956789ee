// SPDX-License-Identifier: Apache-2.0
#include "ingest/tensorflow/tensorflow_trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "formats/protobuf.h"
#include "support/events_of.h"
#include "support/temporary_directory.h"

namespace joulemap::ingest {
namespace {

using formats::ProtobufWriter;

constexpr std::int64_t kStart_us = 1'700'000'000'000'000;
const std::string kTensorflowCpu = "/job:localhost/replica:0/task:0/device:CPU:0";
const std::string kTensorflowGpu = "/job:localhost/replica:0/task:0/device:GPU:0";

std::string device(int process, const std::string& name) {
  return fmt::format(R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":"{}"}}}},)", process, name);
}

std::string row(int process, const std::string& node, const std::string& op, int start_us, int time_us) {
  return fmt::format(
      R"({{"ph":"X","cat":"Op","name":"{}","pid":{},"tid":0,"ts":{},"dur":{},"args":{{"name":"{}","op":"{}"}}}},)", op,
      process, kStart_us + start_us, time_us, node, op);
}

std::string timeline(std::string events) {
  events.pop_back();  // the last comma
  return "{\"traceEvents\":[" + events + "]}";
}

ProtobufWriter node(const std::string& name, const std::string& label, int start_us, int time_us) {
  return ProtobufWriter().add(1, name).add(2, kStart_us + start_us).add(5, time_us).add(8, label);
}

Trace read_expected_trace(const std::string& bytes) {
  Result<Trace> trace = read_tensorflow_trace_bytes(bytes);
  EXPECT_TRUE(trace) << trace.error().message;
  return trace ? *std::move(trace) : Trace();
}

// The events except steps.
std::vector<TraceEvent> list_work_events(const Trace& trace) {
  std::vector<TraceEvent> events = collect_events(trace);
  std::erase_if(events, [](const TraceEvent& event) { return event.kind == EventKind::annotation; });
  return events;
}

scopes::OpScope scope_without_tensors(const Trace& trace, const TraceEvent& event) {
  scopes::OpScope scope = trace.names.at(event.name_index).scope;
  scope.tensors.clear();
  return scope;
}

ProtobufWriter output(int slot, int type, std::initializer_list<int> sizes) {
  ProtobufWriter shape;
  for (const int size : sizes) shape.add(2, ProtobufWriter().add(1, size));
  return ProtobufWriter().add(1, slot).add(3, ProtobufWriter().add(1, type).add(2, shape));
}

TEST(TensorFlowTrace, NodesOfATimelineAreOperationsInTheirScopes) {
  const Trace trace = read_expected_trace(timeline(
      device(0, "Allocators") + device(1, kTensorflowCpu + " Compute") + device(2, kTensorflowCpu + " Tensors") +
      row(1, "_SOURCE", "NoOp", 0, 1) + row(1, "net/dense/MatMul", "MatMul", 2, 10) +
      row(1, "gradients/net/dense/MatMul_grad/MatMul", "MatMul", 20, 10) +
      row(1, "Adam/update_net/dense/kernel/ResourceApplyAdam", "ResourceApplyAdam", 40, 5) +
      R"({"ph":"C","name":"cpu","pid":0,"ts":1,"args":{"cpu":5}},)"));
  const std::vector<TraceEvent> events = list_work_events(trace);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(scope_without_tensors(trace, events[0]), (scopes::OpScope{"forward", "dense", "MatMul"}));
  EXPECT_EQ(scope_without_tensors(trace, events[1]), (scopes::OpScope{"backward", "dense", "MatMul"}));
  EXPECT_EQ(scope_without_tensors(trace, events[2]), (scopes::OpScope{"optimizer", "dense", "ResourceApplyAdam"}));
  EXPECT_EQ(events[0].start_ns, (kStart_us + 2) * 1000);
  EXPECT_EQ(events[0].duration_ns, 10'000);
  EXPECT_EQ(trace.clock, TraceClock::unix_time);
  EXPECT_EQ(trace.dropped_event_count, 0u);
}

TEST(TensorFlowTrace, NodesThatOverlapAreOnDifferentThreads) {
  const Trace trace =
      read_expected_trace(timeline(device(1, kTensorflowCpu + " Compute") + row(1, "a/x", "Add", 0, 10) +
                                   row(1, "a/y", "Add", 5, 10) + row(1, "a/z", "Add", 10, 3)));
  const std::vector<TraceEvent> events = list_work_events(trace);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_NE(events[0].track_index, events[1].track_index);
  EXPECT_EQ(events[0].track_index, events[2].track_index);
}

TEST(TensorFlowTrace, ReadsAKernelOnce) {
  const std::string devices =
      device(1, kTensorflowGpu + " Compute") + device(3, kTensorflowGpu + "/stream:all Compute") +
      device(5, kTensorflowGpu + "/stream:13 Compute") + device(7, kTensorflowGpu + "/memcpy Compute");
  const std::string kernel_rows = row(3, "net/dense/MatMul", "MatMul", 1, 5) +
                                  row(5, "net/dense/MatMul", "MatMul", 1, 5) + row(7, "edge_5", "MEMCPYHtoD", 9, 2) +
                                  row(5, "edge_5", "MEMCPYHtoD", 9, 2);
  const Trace trace = read_expected_trace(timeline(devices + kernel_rows + row(1, "net/dense/MatMul", "MatMul", 0, 1) +
                                                   row(5, "unknown", "cuStreamSynchronize", 20, 50)));
  std::vector<TraceEvent> events = list_work_events(trace);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].kind, EventKind::op);
  EXPECT_EQ(events[1].kind, EventKind::kernel);
  EXPECT_EQ(trace.kernel_queues.at(events[1].track_index).stream, 13u);
  EXPECT_EQ(events[1].external_id, events[0].name_index + 1);
  EXPECT_EQ(events[2].kind, EventKind::copy);
  EXPECT_EQ(trace.kernel_classes.at(events[2].name_index).name, "HtoD");
  EXPECT_TRUE(trace.gpu_events_identify_ops);

  const Trace trace_without_streams = read_expected_trace(
      timeline(device(3, kTensorflowGpu + "/stream:all Compute") + device(7, kTensorflowGpu + "/memcpy Compute") +
               row(3, "net/dense/MatMul", "MatMul", 1, 5) + row(7, "edge_5", "MEMCPYHtoD", 9, 2)));
  EXPECT_EQ(list_work_events(trace_without_streams).size(), 2u);
}

TEST(TensorFlowTrace, RunMetadataGivesTheSameTraceWithKernelNames) {
  ProtobufWriter cpu;
  cpu.add(1, kTensorflowCpu).add(2, node("_SOURCE", "_SOURCE = NoOp()", 0, 1));
  cpu.add(2, node("net/dense/MatMul", "net/dense/MatMul = MatMul(x, net/dense/kernel/read)", 2, 10)
                 .add(13, kStart_us * 1000 + 2'345)
                 .add(16, 9'876));
  ProtobufWriter stream;
  stream.add(1, kTensorflowGpu + "/stream:13")
      .add(2, node("net/dense/MatMul:MatMul",
                   "volta_sgemm regs=122 shm=8192 grid=4,2,1 block=128,1,1@@net/dense/MatMul:MatMul#id=1#", 3, 8));
  const ProtobufWriter step_stats = ProtobufWriter().add(1, cpu).add(1, stream);
  for (const std::string& bytes : {ProtobufWriter().add(1, step_stats).bytes(), step_stats.bytes()}) {
    const Trace trace = read_expected_trace(bytes);
    const std::vector<TraceEvent> events = list_work_events(trace);
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(scope_without_tensors(trace, events[0]), (scopes::OpScope{"forward", "dense", "MatMul"}));
    EXPECT_EQ(events[0].start_ns, kStart_us * 1000 + 2'345);
    EXPECT_EQ(events[0].duration_ns, 9'876);
    EXPECT_EQ(trace.kernel_classes.at(events[1].name_index).name, "volta_sgemm");
    EXPECT_EQ(trace.kernel_classes.at(events[1].name_index).grid, (std::array<std::uint32_t, 3>{4, 2, 1}));
    EXPECT_EQ(events[1].external_id, events[0].name_index + 1);
    EXPECT_EQ(events[1].duration_ns, 8'000);
  }
}

TEST(TensorFlowTrace, NodesHaveTheShapesThatTheNodesBeforeThemPutOut) {
  ProtobufWriter cpu;
  cpu.add(1, kTensorflowCpu);
  cpu.add(2, node("x", "x = Placeholder()", 0, 1).add(7, output(0, 1, {256, 64})));
  cpu.add(2, node("w", "w = VarHandleOp()", 1, 1).add(7, output(0, 20, {})));
  cpu.add(2, node("d/read", "d/read = ReadVariableOp(w)", 2, 1).add(7, output(0, 1, {64, 8})));
  cpu.add(2, node("d/MatMul", "[cpu 0.5MB] d/MatMul = MatMul(x, d/read, ^w)", 3, 5).add(7, output(0, 1, {256, 8})));
  cpu.add(2, node("d/MatMul_1", "d/MatMul_1 = MatMul(x, unseen:1)", 9, 5));
  const Trace trace = read_expected_trace(ProtobufWriter().add(1, ProtobufWriter().add(1, cpu)).bytes());
  const std::vector<TraceEvent> events = list_work_events(trace);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(trace.names.at(events[2].name_index).scope.tensors, "d/read ()");
  EXPECT_EQ(trace.names.at(events[3].name_index).scope.tensors, "d/MatMul [256,64] [64,8]");
  EXPECT_EQ(trace.names.at(events[4].name_index).scope.tensors, "d/MatMul_1");

  const std::string shape =
      R"(dtype: DT_INT64\nshape {\n dim {\n size: 3\n }\n dim {\n size: 2\n }\n}\nallocation_description {)";
  const std::string tensor = fmt::format(
      R"({{"ph":"O","name":"a/y","pid":2,"ts":1,"args":{{"snapshot":{{"tensor_description":"{}"}}}}}},)", shape);
  const std::string reader = R"({"ph":"X","name":"Neg","pid":1,"ts":5,"dur":1,)"
                             R"("args":{"name":"a/z","op":"Neg","input0":"a/y"}},)";
  const Trace text = read_expected_trace(timeline(device(1, kTensorflowCpu + " Compute") + tensor + reader));
  EXPECT_EQ(text.names.at(list_work_events(text).at(0).name_index).scope.tensors, "a/z int64[3,2]");
}

TEST(TensorFlowTrace, EachRunMetadataAndEachFileIsAStep) {
  const auto metadata = [](int start_us) {
    const ProtobufWriter cpu = ProtobufWriter().add(1, kTensorflowCpu).add(2, node("a/x", "a/x = Add()", start_us, 7));
    return ProtobufWriter().add(1, ProtobufWriter().add(1, cpu)).bytes();
  };
  const TemporaryDirectory folder;
  folder.write("late.pb", metadata(500));
  folder.write("early.pb", metadata(0) + metadata(100));
  const std::vector<std::string> paths = {folder.path() + "/late.pb", folder.path() + "/early.pb"};
  const Result<Trace> trace = read_tensorflow_traces(paths);
  ASSERT_TRUE(trace) << trace.error().message;
  std::vector<std::pair<std::string, std::int64_t>> steps;
  for (const TraceEvent& event : collect_events(*trace)) {
    if (event.kind == EventKind::annotation) steps.emplace_back(trace->names.at(event.name_index).text, event.start_ns);
  }
  EXPECT_EQ(steps, (std::vector<std::pair<std::string, std::int64_t>>{{"ProfilerStep#0", kStart_us * 1000},
                                                                      {"ProfilerStep#1", (kStart_us + 100) * 1000},
                                                                      {"ProfilerStep#2", (kStart_us + 500) * 1000}}));
}

TEST(TensorFlowTrace, ATruncatedTraceGivesItsContent) {
  const std::string timeline_json =
      timeline(device(1, kTensorflowCpu + " Compute") + row(1, "a/x", "Add", 0, 10) + row(1, "a/y", "Add", 20, 1));
  const Trace text = read_expected_trace(timeline_json.substr(0, timeline_json.size() - 20));
  EXPECT_EQ(list_work_events(text).size(), 1u);
  EXPECT_TRUE(text.diagnostics.contains("trace_cut"));
  ProtobufWriter cpu;
  cpu.add(1, kTensorflowCpu).add(2, node("a/x", "a/x = Add()", 0, 1)).add(2, node("a/y", "a/y = Add()", 5, 1));
  const std::string step_stats = ProtobufWriter().add(1, cpu).bytes();
  const Trace bytes = read_expected_trace(step_stats.substr(0, step_stats.size() - 3));
  EXPECT_EQ(list_work_events(bytes).size(), 1u);
  EXPECT_EQ(bytes.dropped_event_count, 1u);
  EXPECT_TRUE(bytes.diagnostics.contains("trace_cut"));
}

TEST(TensorFlowTrace, CountsInvalidRows) {
  const Trace trace = read_expected_trace(
      timeline(device(1, kTensorflowCpu + " Compute") + row(1, "a/x", "Add", 0, 10) + row(9, "a/x", "Add", 0, 10) +
               row(1, "a/x", "Add", 0, -10) + R"({"ph":"X","name":"Add","pid":1,"ts":"x"},)"));
  EXPECT_EQ(list_work_events(trace).size(), 1u);
  EXPECT_EQ(trace.dropped_event_count, 3u);
}

TEST(TensorFlowTrace, OtherContentIsAnErrorWithARemedy) {
  for (const char* text :
       {"", "hello", "{}", "[]", "\n{", R"({"traceEvents":[{"ph":"X","name":"a","pid":1,"ts":1,"dur":1}]})"}) {
    const Result<Trace> trace = read_tensorflow_trace_bytes(text);
    ASSERT_FALSE(trace) << text;
    EXPECT_FALSE(trace.error().remedy.empty());
  }
}

}  // namespace
}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/protobuf.h"
#include "support/events_of.h"
#include "support/temporary_directory.h"

namespace joulemap::ingest {
namespace {

using formats::ProtobufWriter;

constexpr std::int64_t kProfileStart_ns = 1'700'000'000'000'000'000;

using StatValues = std::map<std::string, std::variant<std::int64_t, std::string>>;

// Builds one plane; names get ids in order of first use.
class PlaneBuilder {
 public:
  explicit PlaneBuilder(const std::string& name) { plane_.add(2, name); }

  PlaneBuilder& line(std::int64_t id, const std::string& name, std::int64_t begin_ns = 0) {
    end_line();
    line_.add(1, id).add(2, name).add(3, begin_ns);
    return *this;
  }
  PlaneBuilder& event(const std::string& name, std::int64_t begin_ns, std::int64_t time_ns,
                      const StatValues& values = {}, const std::string& display_name = "") {
    ProtobufWriter event;
    event.add(1, find_or_add_id(names_, name)).add(2, begin_ns * 1000).add(3, time_ns * 1000);
    for (const auto& [key, value] : values) event.add(4, make_stat(key, value));
    line_.add(4, event);
    display_names_[name] = display_name;
    return *this;
  }
  PlaneBuilder& value(const std::string& key, const std::variant<std::int64_t, std::string>& value) {
    plane_.add(6, make_stat(key, value));
    return *this;
  }
  PlaneBuilder& program(const std::string& name, const ProtobufWriter& module) {
    const std::string proto = ProtobufWriter().add(1, module).bytes();
    const ProtobufWriter program_stat = ProtobufWriter().add(1, find_or_add_id(keys_, "Hlo Proto")).add(6, proto);
    plane_.add(4, ProtobufWriter().add(1, 900).add(2, ProtobufWriter().add(2, name).add(5, program_stat)));
    return *this;
  }
  std::string bytes() {
    end_line();
    ProtobufWriter tables;
    for (const auto& [name, id] : names_) {
      tables.add(4, ProtobufWriter().add(1, id).add(2, ProtobufWriter().add(2, name).add(4, display_names_[name])));
    }
    for (const auto& [key, id] : keys_) tables.add(5, ProtobufWriter().add(1, id).add(2, ProtobufWriter().add(2, key)));
    return ProtobufWriter().add(1, plane_.bytes() + tables.bytes()).bytes();
  }

 private:
  static std::int64_t find_or_add_id(std::map<std::string, std::int64_t>& id_by_name, const std::string& name) {
    return id_by_name.try_emplace(name, static_cast<std::int64_t>(id_by_name.size()) + 1).first->second;
  }
  ProtobufWriter make_stat(const std::string& key, const std::variant<std::int64_t, std::string>& value) {
    ProtobufWriter stat_proto;
    stat_proto.add(1, find_or_add_id(keys_, key));
    if (const auto* const number = std::get_if<std::int64_t>(&value)) return stat_proto.add(4, *number);
    return stat_proto.add(5, std::get<std::string>(value));
  }
  void end_line() {
    if (!line_.bytes().empty()) plane_.add(3, line_);
    line_ = ProtobufWriter();
  }

  ProtobufWriter plane_, line_;
  std::map<std::string, std::int64_t> names_, keys_;
  std::map<std::string, std::string> display_names_;
};

std::string environment() {
  return PlaneBuilder("Task Environment").value("profile_start_time", kProfileStart_ns).bytes();
}

ProtobufWriter instruction(const std::string& name, const std::string& op_name) {
  return ProtobufWriter().add(1, name).add(7, ProtobufWriter().add(2, op_name));
}

std::string programs() {
  ProtobufWriter computation;
  computation.add(2, instruction("dot.3", "jit(step)/transpose(jvp(Net))/Dense_0/dot_general"));
  computation.add(2, instruction("gemm_fusion_dot.8", "jit(step)/jvp(Net)/Dense_1/dot_general")).add(5, 1);
  return PlaneBuilder("/host:metadata").program("jit_step(12)", ProtobufWriter().add(3, computation)).bytes();
}

StatValues hlo(const std::string& op) { return {{"hlo_op", op}, {"hlo_module", "jit_step"}, {"program_id", 12}}; }

Trace read_expected_trace(const std::string& bytes) {
  Result<Trace> trace = read_xplane_trace_bytes(bytes);
  EXPECT_TRUE(trace) << trace.error().message;
  return trace ? *std::move(trace) : Trace();
}

TEST(XPlaneTrace, OperationsHaveTheirThreadsAndScopes) {
  PlaneBuilder host("/host:CPU");
  host.value("process_id", 77).line(5, "tf_Compute/5", 100);
  host.event("model/dense/MatMul:MatMul", 10, 60, {}, "MatMul").event("ExecutorState::Process", 0, 99);
  host.line(6, "worker", 100).event("dot.3", 0, 7, hlo("dot.3"));
  const Trace trace = read_expected_trace(programs() + host.bytes() + environment());
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].start_ns, kProfileStart_ns + 110);
  EXPECT_EQ(events[0].duration_ns, 60);
  EXPECT_EQ(trace.names.at(events[0].name_index).scope,
            (scopes::OpScope{"forward", "dense", "MatMul", "model/dense/MatMul"}));
  EXPECT_EQ(trace.names.at(events[1].name_index).scope, (scopes::OpScope{"backward", "Dense_0", "dot_general"}));
  EXPECT_EQ(trace.threads.at(events[0].track_index).name, "tf_Compute/5");
  EXPECT_EQ(trace.process, 77);
  EXPECT_EQ(trace.clock, TraceClock::unix_time);
  EXPECT_EQ(trace.read_event_count, 3u);
}

TEST(XPlaneTrace, OlderFilesUseUnixTime) {
  PlaneBuilder host("/host:CPU");
  host.line(5, "t", kProfileStart_ns).event("m/d/MatMul:MatMul", 10, 60, {}, "MatMul");
  EXPECT_EQ(collect_events(read_expected_trace(host.bytes() + environment())).at(0).start_ns, kProfileStart_ns + 10);
  EXPECT_EQ(collect_events(read_expected_trace(host.bytes())).at(0).start_ns, kProfileStart_ns + 10);
}

TEST(XPlaneTrace, WithoutAStartTimeTimesAreRelative) {
  PlaneBuilder host("/host:CPU");
  host.line(5, "t", 3).event("m/d/MatMul:MatMul", 10, 60, {}, "MatMul");
  const Trace trace = read_expected_trace(host.bytes());
  EXPECT_EQ(trace.clock, TraceClock::since_start);
  EXPECT_EQ(collect_events(trace).at(0).start_ns, 13);
}

TEST(XPlaneTrace, ReadsCallsStepsAndFunctions) {
  PlaneBuilder host("/host:CPU");
  host.line(5, "python");
  host.event("train", 0, 900, {{"step_num", 4}}).event("$pjit.py:250 cache_miss", 10, 800);
  host.event("cuLaunchKernel", 20, 5, {{"correlation_id", 31}}).event("ThreadpoolListener::Record", 1, 0);
  const Trace trace = read_expected_trace(host.bytes());
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].kind, EventKind::function);
  EXPECT_EQ(trace.names.at(events[0].name_index).text, "pjit.py:250 cache_miss");
  EXPECT_EQ(events[1].kind, EventKind::api);
  EXPECT_EQ(events[1].correlation, 31u);
  EXPECT_EQ(events[2].kind, EventKind::annotation);
  EXPECT_EQ(trace.names.at(events[2].name_index).text, "ProfilerStep#4");
  EXPECT_FALSE(trace.are_steps_inferred);
  EXPECT_EQ(trace.read_event_count, 4u);
}

// The numbers and start times of the steps in a profile.
std::vector<std::pair<std::string, std::int64_t>> list_steps(const Trace& trace) {
  std::vector<std::pair<std::string, std::int64_t>> steps;
  for (const TraceEvent& event : collect_events(trace)) {
    if (event.kind == EventKind::annotation) steps.emplace_back(trace.names.at(event.name_index).text, event.start_ns);
  }
  return steps;
}

using NamedSteps = std::vector<std::pair<std::string, std::int64_t>>;

TEST(XPlaneTrace, CallsOfTheLongestFunctionAreStepsOfATraceWithoutAnnotations) {
  const StatValues call = {{"tf_function_call", "notTraced-nonXla"}, {"tracing_count", 1}};
  const StatValues root = {{"_r", 1}, {"id", 7}};
  PlaneBuilder host("/host:CPU");
  host.line(5, "python").event("train_step", 0, 9, {{"tf_function_call", "traced-nonXla"}});
  for (const int step : {10, 20}) {
    host.event("train_step", step, 6, call).event("inner", step + 1, 4, call).event("FunctionRun", step + 2, 2, root);
  }
  host.event("test_step", 30, 3, call);
  const Trace trace = read_expected_trace(host.bytes());
  EXPECT_EQ(list_steps(trace), (NamedSteps{{"ProfilerStep#0", 10}, {"ProfilerStep#1", 20}}));
  EXPECT_TRUE(trace.are_steps_inferred);
}

TEST(XPlaneTrace, RunsOfASessionAreSteps) {
  PlaneBuilder host("/host:CPU");
  host.line(5, "python").event("SessionRun", 10, 6, {{"_r", 1}, {"id", 5}});
  host.event("SessionRun", 20, 6, {{"_r", 1}, {"id", 6}});
  EXPECT_EQ(list_steps(read_expected_trace(host.bytes())),
            (NamedSteps{{"ProfilerStep#0", 10}, {"ProfilerStep#1", 20}}));
}

TEST(XPlaneTrace, TheStepsOfADeviceCountOnceWhereTheHostHasNone) {
  PlaneBuilder first_gpu("/device:GPU:0"), second_gpu("/device:GPU:1");
  for (PlaneBuilder* const gpu : {&first_gpu, &second_gpu}) {
    gpu->line(2, "Stream #2").event("k", 0, 5).line(98, "Steps");
    gpu->event("7", 0, 10, {{"group_id", 0}}).event("8", 10, 10, {{"group_id", 1}});
  }
  const Trace trace = read_expected_trace(first_gpu.bytes() + second_gpu.bytes());
  EXPECT_EQ(list_steps(trace), (NamedSteps{{"ProfilerStep#7", 0}, {"ProfilerStep#8", 10}}));
  EXPECT_FALSE(trace.are_steps_inferred);
  PlaneBuilder host("/host:CPU");
  host.line(5, "python").event("train", 3, 6, {{"step_num", 40}, {"_r", 1}});
  EXPECT_EQ(list_steps(read_expected_trace(first_gpu.bytes() + host.bytes())), (NamedSteps{{"ProfilerStep#40", 3}}));
}

TEST(XPlaneTrace, NodesOfOneScopeHaveTheirNamesAndShapes) {
  PlaneBuilder host("/host:CPU");
  host.line(5, "tf_Compute/5");
  host.event("net/dense/MatMul:MatMul", 0, 5, {{"shape", "(float[256,64];float[64,8])"}}, "MatMul");
  host.event("StatefulPartitionedCall/net/dense/MatMul_1:MatMul", 9, 5, {}, "MatMul");
  host.event("__inference_step_9:__inference_step_9", 0, 50, {}, "__inference_step_9");
  const Trace trace = read_expected_trace(host.bytes());
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(trace.names.at(events[0].name_index).scope.tensors, "net/dense/MatMul [256,64] [64,8]");
  EXPECT_EQ(trace.names.at(events[1].name_index).scope,
            (scopes::OpScope{"forward", "dense", "MatMul", "net/dense/MatMul_1"}));
}

// A training step of TensorFlow on a GPU, as its profiler writes it: operations on threads of the host, calls of the
// driver in a plane of their own, kernels on streams with the operation that launched them.
TEST(XPlaneTrace, KernelsOfTensorFlowBelongToLayersPhasesAndSteps) {
  const auto kernel = [](const std::string& op, int correlation) {
    return StatValues{
        {"tf_op", op},
        {"correlation_id", correlation},
        {"context_id", "$$1"},
        {"kernel_details", "regs:122 static_shared:0 dynamic_shared:8192 grid:4,2,1 block:128,1,1 occ_pct:50"}};
  };
  PlaneBuilder host("/host:CPU"), driver("/host:CUPTI"), gpu("/device:GPU:0");
  host.line(5, "python").event("train", 0, 100, {{"step_num", 3}, {"_r", 1}});
  host.line(6, "tf_gpu_1/6").event("net/dense/MatMul:MatMul", 10, 8, {}, "MatMul");
  driver.line(6, "Thread 6")
      .event("cuLaunchKernel", 12, 2, {{"correlation_id", 31}, {"tf_op", "net/dense/MatMul:MatMul"}});
  gpu.value("gpu_device_name", "NVIDIA A100").line(14, "Stream #14(Kernel)");
  gpu.event("ampere_sgemm_128x64_nn", 20, 30, kernel("net/dense/MatMul:MatMul", 31));
  gpu.event("ampere_sgemm_128x64_nt", 60, 20, kernel("gradient_tape/net/dense/MatMul/MatMul_1:MatMul", 32));
  gpu.event("ResourceApplyAdam_kernel", 80, 5,
            kernel("Adam/update_net/dense/kernel/ResourceApplyAdam:ResourceApplyAdam", 33));
  gpu.event("MemoryResidency", 81, 90, {{"MemoryResidency_details", "kind:device num_bytes:4"}});
  gpu.line(15, "Stream #15(MemcpyD2H)")
      .event("MemcpyD2H", 90, 4, {{"memcpy_details", "kind_src:device size:4 dest:0 async:1"}});
  gpu.line(99, "TensorFlow Name Scope").event("net", 20, 30).line(98, "TensorFlow Ops").event("MatMul", 20, 30);
  const Trace trace = read_expected_trace(host.bytes() + driver.bytes() + gpu.bytes());
  std::vector<TraceEvent> kernels, calls;
  for (const TraceEvent& event : collect_events(trace)) {
    if (event.kind == EventKind::kernel) kernels.push_back(event);
    if (event.kind == EventKind::api) calls.push_back(event);
  }
  ASSERT_EQ(kernels.size(), 3u);
  const auto event_scope = [&](const TraceEvent& event) { return trace.names.at(event.external_id - 1).scope; };
  EXPECT_EQ(event_scope(kernels[0]), (scopes::OpScope{"forward", "dense", "MatMul", "net/dense/MatMul"}));
  EXPECT_EQ(event_scope(kernels[1]).phase + "/" + event_scope(kernels[1]).module, "backward/dense");
  EXPECT_EQ(event_scope(kernels[2]).phase + "/" + event_scope(kernels[2]).module, "optimizer/dense");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].correlation, kernels[0].correlation);
  EXPECT_EQ(trace.threads.at(calls[0].track_index).thread, 6);
  EXPECT_EQ(list_steps(trace), (NamedSteps{{"ProfilerStep#3", 0}}));
  EXPECT_TRUE(trace.diagnostics.empty());
}

TEST(XPlaneTrace, AnOperationContinuesOnTheThreadWhereItEnds) {
  StatValues begin = hlo("dot.3");
  begin["_p"] = 42;
  PlaneBuilder host("/host:CPU");
  host.line(5, "worker").event("dot.3", 0, 10, begin).line(6, "pool").event("end: dot.3", 90, 10, {{"_c", 42}});
  const Trace trace = read_expected_trace(programs() + host.bytes());
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].name_index, events[0].name_index);
  EXPECT_EQ(events[1].start_ns, 10);
  EXPECT_EQ(events[1].duration_ns, 90);
  EXPECT_NE(events[1].track_index, events[0].track_index);
}

TEST(XPlaneTrace, GpuWorkIdentifiesItsOperation) {
  StatValues graph_kernel = hlo("command_buffer_3");  // a CUDA graph: the kernel's name identifies the instruction
  StatValues kernel = hlo("dot.3");
  kernel["correlation_id"] = 5;
  kernel["context_id"] = "$$2";
  kernel["kernel_details"] = "regs:24 static_shared:0 dynamic_shared:0 grid:8,2,1 block:128,1,1 occ_pct:100";
  PlaneBuilder gpu("/device:GPU:1");
  gpu.value("gpu_device_name", "NVIDIA H200");
  gpu.line(14, "Stream #14(Compute)")
      .event("volta_sgemm", 100, 50, kernel)
      .event("gemm_fusion_dot_8", 150, 20, graph_kernel);
  gpu.event("MemcpyH2D", 180, 4, {{"memcpy_details", "kind_src:pinned kind_dst:device size:4096 dest:0 async:1"}});
  gpu.event("Memset 3", 190, 4, {{"Memset_details", "kind:device num_bytes:27648 async:1"}});
  gpu.event("sgemm", 200, 9, {{"tf_op", "gradient_tape/model/dense/MatMul:MatMul"}});
  gpu.line(99, "XLA Ops").event("dot.3", 100, 50).line(98, "Steps").event("4", 0, 900);
  const Trace trace = read_expected_trace(programs() + gpu.bytes());
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 6u);
  ASSERT_TRUE(trace.gpu_events_identify_ops);
  EXPECT_EQ(trace.names.at(events[0].external_id - 1).scope, (scopes::OpScope{"backward", "Dense_0", "dot_general"}));
  EXPECT_EQ(events[0].correlation, 5u);
  EXPECT_EQ(trace.kernel_classes.at(events[0].name_index).grid, (std::array<std::uint32_t, 3>{8, 2, 1}));
  EXPECT_EQ(trace.kernel_queues.at(events[0].track_index).ordinal, 1u);
  EXPECT_EQ(trace.kernel_queues.at(events[0].track_index).context, 2u);
  EXPECT_EQ(trace.kernel_queues.at(events[0].track_index).stream, 14u);
  EXPECT_EQ(trace.names.at(events[1].external_id - 1).scope, (scopes::OpScope{"forward", "Dense_1", "dot_general"}));
  EXPECT_EQ(events[2].kind, EventKind::copy);
  EXPECT_EQ(trace.kernel_classes.at(events[2].name_index).name, "HtoD");
  EXPECT_EQ(trace.byte_counts.at(events[2].detail_index), 4096u);
  EXPECT_EQ(events[3].kind, EventKind::fill);
  EXPECT_EQ(trace.byte_counts.at(events[3].detail_index), 27'648u);
  EXPECT_EQ(trace.names.at(events[4].external_id - 1).scope,
            (scopes::OpScope{"backward", "dense", "MatMul", "gradient_tape/model/dense/MatMul"}));
}

TEST(XPlaneTrace, KernelsOfAGraphBelongToInstructionsOfItsProgram) {
  ProtobufWriter computation;
  computation.add(2, instruction("dot.1", "jit(step)/jvp(Net)/Dense_0/dot_general").add(2, "fusion").add(35, 11));
  computation.add(2, instruction("bitcast", "jit(step)/jvp(Net)/x").add(2, "bitcast").add(35, 12));
  computation.add(2, instruction("dot.2", "jit(step)/jvp(Net)/Dense_1/dot_general").add(2, "fusion").add(35, 13))
      .add(5, 1);
  const ProtobufWriter sequence = ProtobufWriter().add(1, std::string("\x0b\x0c\x0d"));
  const ProtobufWriter schedule = ProtobufWriter().add(1, ProtobufWriter().add(1, 1).add(2, sequence));
  PlaneBuilder metadata("/host:metadata");
  metadata.program("jit_step(12)", ProtobufWriter().add(3, computation).add(7, schedule));
  PlaneBuilder gpu("/device:GPU:0");
  gpu.line(14, "Stream #14(Compute)");
  for (const int launch : {1, 2}) {
    for (const int node : {8, 7}) {  // the second dot first
      StatValues values = hlo("command_buffer_3");
      values["correlation_id"] = launch;
      values["cuda_graph_node_id"] = node;
      gpu.event("dot_1", launch * 100 - node, 1, values);
    }
  }
  const Trace trace = read_expected_trace(metadata.bytes() + gpu.bytes());
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 4u);
  for (const TraceEvent& event : events) {
    const bool is_first = event.start_ns % 100 == 93;
    EXPECT_EQ(trace.names.at(event.external_id - 1).scope.module, is_first ? "Dense_0" : "Dense_1");
  }
  EXPECT_TRUE(trace.diagnostics.empty());
}

TEST(XPlaneTrace, SkipsAndReportsAnUnknownGpuLine) {
  PlaneBuilder gpu("/device:GPU:0");
  gpu.line(1, "Something new").event("k", 0, 5).line(2, "Stream #2").event("k", 0, 5);
  const Trace trace = read_expected_trace(gpu.bytes());
  EXPECT_EQ(collect_events(trace).size(), 1u);
  EXPECT_TRUE(trace.diagnostics.contains("line_left_out"));
}

TEST(XPlaneTrace, ImpossibleEventsAreDroppedAndCounted) {
  PlaneBuilder host("/host:CPU");
  host.line(5, "t").event("a/b/C:C", 0, -5, {}, "C").event("a/b/C:C", 0, 5, {}, "C");
  const Trace trace = read_expected_trace(host.bytes());
  EXPECT_EQ(collect_events(trace).size(), 1u);
  EXPECT_EQ(trace.dropped_event_count, 1u);
}

TEST(XPlaneTrace, ReadsCompletePlanesOfATruncatedFileAndCountsTheRest) {
  PlaneBuilder gpu("/device:GPU:0");
  gpu.line(2, "Stream #2").event("k", 0, 5);
  PlaneBuilder host("/host:CPU");
  host.line(5, "t").event("a/b/C:C", 0, 5, {}, "C").event("a/b/C:C", 9, 5, {}, "C");
  const std::string bytes = gpu.bytes() + host.bytes();
  const Trace trace = read_expected_trace(bytes.substr(0, bytes.size() - 4));
  EXPECT_EQ(collect_events(trace).size(), 1u);
  EXPECT_EQ(trace.dropped_event_count, 2u);
  EXPECT_TRUE(trace.diagnostics.contains("damaged_trace"));
  const std::string host_bytes = host.bytes();
  const Result<Trace> truncated_trace = read_xplane_trace_bytes(host_bytes.substr(0, host_bytes.size() - 4));
  ASSERT_FALSE(truncated_trace);
  EXPECT_NE(truncated_trace.error().message.find("truncated"), std::string::npos);
}

TEST(XPlaneTrace, ReadsTheNewestRunOfAFolder) {
  const TemporaryDirectory folder;
  PlaneBuilder older_profile("/device:GPU:0"), newest_profile("/device:GPU:1");
  older_profile.line(2, "Stream #2").event("k", 0, 5);
  newest_profile.line(2, "Stream #2").event("k", 0, 5);
  folder.write("log/plugins/profile/2026_01_02_03_04_05/a.xplane.pb", older_profile.bytes());
  folder.write("log/plugins/profile/2026_11_02_03_04_05/a.xplane.pb", newest_profile.bytes());
  folder.write("log/plugins/profile/2026_11_02_03_04_05/b.xplane.pb", older_profile.bytes());
  folder.write("log/plugins/profile/2026_12_02_03_04_05/a.trace.json.gz", "");
  const Result<Trace> trace = read_xplane_trace(folder.path() + "/log");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->kernel_queues.at(0).ordinal, 1u);
  EXPECT_TRUE(trace->diagnostics.contains("profiles_left_out"));
}

TEST(XPlaneTrace, OtherContentIsAnErrorWithARemedy) {
  for (const char* text : {"", "hello", "\n\x03xyz", "{\"traceEvents\": []}"}) {
    const Result<Trace> trace = read_xplane_trace_bytes(text);
    ASSERT_FALSE(trace) << text;
    EXPECT_FALSE(trace.error().remedy.empty());
  }
  const TemporaryDirectory folder;
  EXPECT_FALSE(read_xplane_trace(folder.path()));
  EXPECT_FALSE(read_xplane_trace(folder.path() + "/none"));
}

// The whole trace as text.
std::string trace_as_text(const Result<Trace>& trace_result) {
  if (!trace_result) return trace_result.error().message;
  const Trace& trace = *trace_result;
  std::string text =
      fmt::format("{} {} {}\n", trace.read_event_count, trace.dropped_event_count, trace.process.value_or(-1));
  for (const TraceEvent& event : collect_events(trace)) {
    text +=
        fmt::format("{} {} {} {} {} {} {} {}\n", event.start_ns, event.duration_ns, event.name_index, event.track_index,
                    event.correlation, event.external_id, event.detail_index, static_cast<int>(event.kind));
  }
  for (const TraceName& name : trace.names) text += name.text + " " + name.scope.module + "/" + name.scope.op + "\n";
  for (const KernelClass& kernel_class : trace.kernel_classes)
    text += fmt::format("{} {} {}\n", kernel_class.id, kernel_class.name, kernel_class.grid[0]);
  for (const KernelQueue& queue : trace.kernel_queues)
    text += fmt::format("{} {} {}\n", queue.id, queue.context, queue.stream);
  for (const TraceThread& thread : trace.threads) text += fmt::format("{} {}\n", thread.thread, thread.name);
  for (const std::uint64_t bytes : trace.byte_counts) text += fmt::format("{}\n", bytes);
  for (const Diagnostic& note : trace.diagnostics.list()) text += fmt::format("{} {}\n", note.count, note.message);
  return text;
}

std::string random_busy_xspace(std::mt19937& random) {
  const auto random_below = [&](unsigned end) { return static_cast<std::int64_t>(random() % end); };
  PlaneBuilder gpu("/device:GPU:0"), host("/host:CPU");
  for (int line = 0; line < 3; ++line) {
    gpu.line(7 + line, "Stream", 100);
    host.line(40 + line, line == 1 ? "tf_data_1" : "worker", 100);
    for (int i = 0; i < 60; ++i) {
      StatValues values = random_below(2) == 0 ? hlo(fmt::format("dot.{}", random_below(9))) : StatValues();
      values["correlation_id"] = random_below(50);
      values["context_id"] = fmt::format("$${}", random_below(3));
      values["kernel_details"] = fmt::format("grid:{},1,1 block:4,1,1", random_below(5));
      if (random_below(5) == 0) values = {{"memcpy_details", fmt::format("kind:H2D size:{}", random_below(7))}};
      gpu.event(fmt::format("kernel_{}", random_below(20)), i * 10, random_below(9), values);
      host.event(fmt::format("$file.py:{} f", random_below(30)), i * 10, random_below(9));
      host.event(fmt::format("op_{}:Add", random_below(9)), i * 10, random_below(9), {{"_p", random_below(99)}}, "Add");
      if (random_below(9) == 0)
        host.event(fmt::format("run_{}", random_below(2)), i * 10, random_below(30), {{"_r", 1}});
      host.event(fmt::format("end: op_{}", random_below(9)), i * 10, random_below(30), {{"_c", random_below(99)}});
    }
  }
  return programs() + gpu.bytes() + host.bytes() + environment();
}

TEST(XPlaneTrace, ThreadCountDoesNotChangeTheResult) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::string bytes = random_busy_xspace(random);
    for (unsigned flips = 0; flips < seed; ++flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    const std::string expected_text = trace_as_text(read_xplane_trace_bytes(bytes, {.threads = 1}));
    for (const std::size_t segment_bytes : {1U, 100U, 3000U}) {
      for (const std::size_t threads : {1U, 2U, 3U}) {
        EXPECT_EQ(trace_as_text(read_xplane_trace_bytes(bytes, {threads, segment_bytes})), expected_text)
            << threads << segment_bytes;
      }
    }
  }
}

}  // namespace
}  // namespace joulemap::ingest

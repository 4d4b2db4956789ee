// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/kineto_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/events_of.h"
#include "support/temporary_directory.h"

namespace joulemap::ingest {
namespace {

constexpr std::int64_t kBaseTime_ns = 1'735'632'360'000'000'000;

std::string kineto_json(const std::string& events, const std::string& leading_members = "",
                        const std::string& trailing_members = "") {
  return "{\n  \"schemaVersion\": 1,\n" + leading_members + "  \"traceEvents\": [\n" + events + "\n  ]" +
         trailing_members + "\n}";
}
std::string kineto_json_with_base_time(const std::string& events) {
  return kineto_json(events, "", fmt::format(",\n  \"baseTimeNanoseconds\": {}", kBaseTime_ns));
}

// An event as Kineto formats it.
std::string event(const std::string& category, const std::string& name, const std::string& ts, const std::string& dur,
                  const std::string& args, const std::string& pid = "461", const std::string& tid = "487") {
  return fmt::format(
      "  {{\n    \"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": {}, \"tid\": {},\n    \"ts\": {}, \"dur\": "
      "{},\n"
      "    \"args\": {{\n      {}\n    }}\n  }}",
      category, name, pid, tid, ts, dur, args);
}
std::string op(const std::string& name, int ts = 5) { return event("cpu_op", name, std::to_string(ts), "2", ""); }

std::vector<std::string> names_of(const Trace& trace) {
  std::vector<std::string> names;
  for (const TraceEvent& trace_event : collect_events(trace)) {
    names.push_back(is_on_gpu(trace_event.kind) ? trace.kernel_classes[trace_event.name_index].name
                                                : trace.names[trace_event.name_index].text);
  }
  return names;
}
using Names = std::vector<std::string>;

TEST(KinetoReader, AnOperationHasItsTimesThreadAndIds) {
  const Trace trace = read_kineto_text(
      kineto_json_with_base_time(event("cpu_op", "aten::add", "4203669604595.407", "340.024",
                                       R"("External id": 513, "Sequence number": 7, "Fwd thread id": 0)")));
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].start_ns, kBaseTime_ns + 4'203'669'604'595'407);
  EXPECT_EQ(events[0].duration_ns, 340'024);
  EXPECT_EQ(events[0].kind, EventKind::op);
  EXPECT_EQ(events[0].external_id, 513u);
  EXPECT_EQ(events[0].detail_index, 8u);
  EXPECT_FALSE(events[0].is_backward);
  EXPECT_EQ(trace.names[events[0].name_index].text, "aten::add");
  EXPECT_EQ(trace.threads[events[0].track_index].process, 461);
  EXPECT_EQ(trace.threads[events[0].track_index].thread, 487);
  EXPECT_EQ(trace.clock, TraceClock::unix_time);
  EXPECT_EQ(trace.process, 461);
  EXPECT_TRUE(trace.diagnostics.empty());
}

TEST(KinetoReader, OldTracesUseUnixTime) {
  const Trace trace = read_kineto_text(kineto_json(event("cpu_op", "aten::add", "1669783687464181", "45", "")));
  EXPECT_EQ(collect_events(trace)[0].start_ns, 1'669'783'687'464'181'000);
  EXPECT_EQ(trace.clock, TraceClock::unix_time);
}

TEST(KinetoReader, FindsTheTimeBaseInADamagedEnd) {
  const std::string text = kineto_json(
      op("a"), "", fmt::format(",\n \"INFO\": [\"a \"b\" c\"],\n \"baseTimeNanoseconds\": {}", kBaseTime_ns));
  const Trace trace = read_kineto_text(text);
  EXPECT_EQ(collect_events(trace)[0].start_ns, kBaseTime_ns + 5000);
  EXPECT_TRUE(trace.diagnostics.contains("import.damaged-header"));
}

TEST(KinetoReader, RecognizesBackwardOperationsByTheForwardThread) {
  const Trace trace = read_kineto_text(kineto_json_with_base_time(
      event("cpu_op", "MulBackward0", "1", "2", R"("Sequence number": 4627, "Fwd thread id": 1)")));
  EXPECT_TRUE(collect_events(trace)[0].is_backward);
  EXPECT_EQ(collect_events(trace)[0].detail_index, 4628u);
}

TEST(KinetoReader, CategoriesBecomeKinds) {
  const std::string text = kineto_json_with_base_time(
      event("user_annotation", "ProfilerStep#3", "1", "9", "") + "," +
      event("python_function", "nn.Module: Conv2d_3", "1", "8", R"("Python parent id": null, "Python id": 1)") + "," +
      event("python_function", "train.py(14): step", "1", "8", "") + "," +
      event("cuda_runtime", "hipLaunchKernel", "2", "1", R"("stream": "0x0", "correlation": 119, "grid": [7, 1, 1])") +
      "," + event("cuda_driver", "cuLaunchKernel", "3", "1", R"("correlation": 120)") + "," +
      event("gpu_user_annotation", "step", "3", "1", "", "0", "7") + "," +
      event("overhead", "buffer", "3", "1", "", "-1") + "," +
      event("Trace", "PyTorch Profiler (0)", "1", "9", "", "\"Spans\"", "\"PyTorch Profiler\"") + "," +
      R"({"ph": "f", "id": 1, "pid": 1, "tid": 2, "ts": 3.5, "cat": "ac2g", "name": "ac2g", "bp": "e"},)" +
      R"({"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 4})");
  const Trace trace = read_kineto_text(text);
  const std::vector<TraceEvent> events = collect_events(trace);
  EXPECT_EQ(names_of(trace),
            (Names{"ProfilerStep#3", "Conv2d_3", "train.py(14): step", "hipLaunchKernel", "cuLaunchKernel"}));
  EXPECT_EQ(events[0].kind, EventKind::annotation);
  EXPECT_EQ(events[1].kind, EventKind::module);
  EXPECT_EQ(events[2].kind, EventKind::function);
  EXPECT_EQ(events[3].kind, EventKind::api);
  EXPECT_EQ(events[3].correlation, 119u);
  EXPECT_EQ(events[4].kind, EventKind::api);
  EXPECT_EQ(trace.read_event_count, 10u);
  EXPECT_EQ(trace.dropped_event_count, 0u);
  EXPECT_TRUE(trace.diagnostics.empty());
}

TEST(KinetoReader, GpuWorkHasAClassAQueueAndASize) {
  const std::string queue = R"("device": 2, "context": 1, "stream": 7, )";
  const Trace trace = read_kineto_text(kineto_json_with_base_time(
      event("kernel", "void gemm<{lambda()#1}>(int)", "1", "2",
            queue + R"("External id": 6, "correlation": 12, "grid": [2400, 1, 3], "block": [256, 1, 1])", "2", "7") +
      "," + event("kernel", "void gemm<{lambda()#1}>(int)", "4", "2", queue + R"("grid": [1, 1, 1])", "2", "7") + "," +
      event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "1", "2", queue + R"("bytes": 92928)") + "," +
      event("gpu_memset", "Memset (Device)", "1", "2", R"("device": 0, "stream": 20, "bytes": 4)", "0", "20") + "," +
      event("kernel", "no queue told", "1", "2", "", "3", "9")));
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 5u);
  const KernelClass& gemm = trace.kernel_classes[events[0].name_index];
  EXPECT_EQ(gemm.name, "void gemm<{lambda()#1}>(int)");
  EXPECT_EQ(gemm.grid, (std::array<std::uint32_t, 3>{2400, 1, 3}));
  EXPECT_EQ(gemm.block, (std::array<std::uint32_t, 3>{256, 1, 1}));
  EXPECT_EQ(gemm.id, events[0].name_index);
  EXPECT_NE(events[1].name_index, events[0].name_index);
  EXPECT_EQ(events[0].correlation, 12u);
  EXPECT_EQ(events[0].external_id, 6u);
  const KernelQueue& kernel_queue = trace.kernel_queues[events[0].track_index];
  EXPECT_EQ(kernel_queue.ordinal, 2u);
  EXPECT_EQ(kernel_queue.context, 1u);
  EXPECT_EQ(kernel_queue.stream, 7u);
  EXPECT_EQ(trace.kernel_classes[events[2].name_index].kind, KernelKind::copy);
  EXPECT_EQ(trace.byte_counts[events[2].detail_index], 92928u);
  EXPECT_EQ(events[2].track_index, events[0].track_index);
  EXPECT_EQ(trace.kernel_classes[events[3].name_index].kind, KernelKind::fill);
  EXPECT_EQ(trace.kernel_queues[events[3].track_index].stream, 20u);
  EXPECT_EQ(trace.kernel_queues[events[4].track_index].ordinal, 3u);
  EXPECT_EQ(trace.kernel_queues[events[4].track_index].stream, 9u);
}

TEST(KinetoReader, IgnoresAnExternalIdThatRepeatsTheCorrelation) {
  const Trace legacy_trace =
      read_kineto_text(kineto_json(event("kernel", "k", "1", "2", R"("External id": 77, "correlation": 77)") + "," +
                                   event("cpu_op", "a", "1", "2", R"("External id": 77)")));
  EXPECT_EQ(collect_events(legacy_trace)[0].external_id, 0u);
  EXPECT_EQ(collect_events(legacy_trace)[1].external_id, 77u);
}

TEST(KinetoReader, ReadsCategoriesAndIdsOfTheFirstProfilers) {
  const Trace trace =
      read_kineto_text(kineto_json(event("Operator", "ProfilerStep#1", "1", "2", R"("external id": 3)") + "," +
                                   event("Operator", "aten::add", "1", "2", R"("external id": 4)") + "," +
                                   event("Runtime", "cudaLaunchKernel", "1", "2", R"("correlation": 4)") + "," +
                                   event("Memcpy", "Memcpy", "1", "2", R"("correlation": 4)")));
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].kind, EventKind::annotation);
  EXPECT_EQ(events[0].external_id, 3u);
  EXPECT_EQ(events[1].kind, EventKind::op);
  EXPECT_EQ(events[2].kind, EventKind::api);
  EXPECT_EQ(events[3].kind, EventKind::copy);
}

TEST(KinetoReader, AModuleHierarchyIsAScope) {
  const Trace trace = read_kineto_text(kineto_json_with_base_time(
      event("cpu_op", "aten::conv2d", "1", "2",
            R"("Module Hierarchy": "TOP(Net)::forward.SELF(Net)::_impl.layer1(Sequential)::forward)"
            R"(.0(Block)::forward.aten::conv2d")") +
      "," + event("cpu_op", "aten::conv2d", "4", "2", "")));
  const std::vector<TraceEvent> events = collect_events(trace);
  EXPECT_EQ(trace.names[events[0].name_index].scope.module, "layer1.0");
  EXPECT_EQ(trace.names[events[0].name_index].text, "aten::conv2d");
  EXPECT_EQ(trace.names[events[1].name_index].scope, scopes::OpScope());
}

TEST(KinetoReader, ReadsShapesWithTheNameOfTheOperation) {
  const auto conv = [](const char* start, const char* shapes) {
    return event("cpu_op", "aten::conv2d", start, "2",
                 std::string(R"("Input type": ["float", "c10::Half", "Scalar"], "Input Dims": )") + shapes);
  };
  const Trace trace = read_kineto_text(kineto_json_with_base_time(conv("1", "[[2, 3], [4, 5], []]") + "," +
                                                                  conv("4", "[[2,3],[4,5],[]]") + "," +
                                                                  conv("7", "[[9], [], []]") + "," + conv("10", "7")));
  const std::vector<TraceEvent> events = collect_events(trace);
  EXPECT_EQ(trace.names[events[0].name_index].text, "aten::conv2d");
  EXPECT_EQ(trace.names[events[0].name_index].scope, (scopes::OpScope{.tensors = "[2,3] float16[4,5]"}));
  EXPECT_EQ(events[0].name_index, events[1].name_index);
  EXPECT_EQ(trace.names[events[2].name_index].scope.tensors, "[9] float16[]");
  EXPECT_EQ(trace.names[events[3].name_index].scope, scopes::OpScope());
}

TEST(KinetoReader, ReadsTheMetadataOfTheFile) {
  const Trace trace = read_kineto_text(kineto_json(
      op("a"),
      R"("deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132}, {"id": 1, "name": "NVIDIA H200"}],
                 "cuda_driver_version": 13000, "host_name": "node7", "with_stack": 1,)",
      R"(, "distributedInfo": {"backend": "nccl", "rank": 34, "world_size": 300, "pg_config": [{"ranks": [0, 1]}]})"));
  EXPECT_EQ(trace.rank, 34);
  EXPECT_EQ(trace.host, "node7");
  std::string environment;
  for (const EnvironmentFact& fact : trace.environment) environment += fact.name + "=" + fact.value + ";";
  EXPECT_EQ(environment, "gpu0=NVIDIA H200;gpu1=NVIDIA H200;cuda_driver_version=13000;backend=nccl;world_size=300;");
}

TEST(KinetoReader, ReadsThreadNamesAnywhereInTheFile) {
  const std::string name =
      R"({"name": "thread_name", "ph": "M", "ts": 1, "pid": 461, "tid": 487, "args": {"name": "pt_autograd_0"}})";
  for (const std::string& text : {op("a") + "," + name, name + "," + op("a")}) {
    const Trace trace = read_kineto_text(kineto_json_with_base_time(text));
    ASSERT_EQ(trace.threads.size(), 1u);
    EXPECT_EQ(trace.threads[0].name, "pt_autograd_0");
  }
}

TEST(KinetoReader, PidsMayBeStrings) {
  const Trace trace =
      read_kineto_text(kineto_json_with_base_time(event("cpu_op", "a", "1", "2", "", "\"461\"", "\"487\"") + "," +
                                                  event("cpu_op", "b", "1", "2", "", "\"main\"", "\"loader\"") + "," +
                                                  event("cpu_op", "c", "1", "2", "", "\"main\"", "\"other\"")));
  ASSERT_EQ(trace.threads.size(), 3u);
  EXPECT_EQ(trace.threads[0].thread, 487);
  EXPECT_EQ(trace.threads[1].name, "loader");
  EXPECT_EQ(trace.threads[1].process, trace.threads[2].process);
  EXPECT_NE(trace.threads[1].thread, trace.threads[2].thread);
  EXPECT_LT(trace.threads[1].process, 0);
}

TEST(KinetoReader, ReadsAPlainFileFromDisk) {
  const TemporaryDirectory folder;
  const Result<Trace> trace =
      read_kineto(folder.write("trace.json", kineto_json_with_base_time(op("a") + "," + op("b"))));
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(names_of(*trace), (Names{"a", "b"}));
}

TEST(KinetoReader, OtherContentIsAnErrorWithARemedy) {
  const TemporaryDirectory folder;
  for (const std::string text :
       {"", "  ", "hello", "{}", R"({"schema": "1.0.1", "nodes": []})", "{\"a\": ", "\x1f\x8b",
        R"([{"cat": "Session", "ph": "X", "ts": 1, "dur": 2, "name": "model_run", "args": {}}])"}) {
    const Result<Trace> trace = read_kineto(folder.write("t", text));
    ASSERT_FALSE(trace.has_value()) << text;
    EXPECT_FALSE(trace.error().remedy.empty()) << text;
    EXPECT_EQ(trace.error().code, ErrorCode::malformed);
  }
  EXPECT_EQ(read_kineto("/no/such/trace.json").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace joulemap::ingest

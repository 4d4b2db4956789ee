// SPDX-License-Identifier: Apache-2.0
#include "ingest/nsys/nsys_trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "support/events_of.h"
#include "support/sqlite_file.h"
#include "support/temporary_directory.h"

namespace joulemap::ingest {
namespace {

constexpr std::int64_t kProcess = 100, kOtherProcess = 200;

std::int64_t global_thread_id(std::int64_t process, std::int64_t thread) {
  return (1LL << 56) | process << 24 | thread;
}

// The tables as nsys 2024 writes them, with the columns that the reader uses.
const std::string kCreateTablesSql = R"(
  CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT, contextId INT, streamId INT,
    correlationId INT, globalPid INT, demangledName INT, shortName INT, mangledName INT, gridX INT, gridY INT, gridZ INT,
    blockX INT, blockY INT, blockZ INT, graphNodeId INT);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL, eventClass INT, globalTid INT,
    correlationId INT, nameId INT, returnValue INT);
  INSERT INTO StringIds VALUES (1, 'gemm<float>(float)'), (2, 'gemm'), (3, '_Z4gemmIfEvT_'), (4, 'cudaLaunchKernel_v7000'),
    (5, 'forward'), (6, 'worker');
)";
const std::string kNvtxTableSql =
    "CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, rangeId INT, category INT, text "
    "TEXT, "
    "globalTid INT, endGlobalTid INT, textId INT, domainId INT);";

std::string kernel(std::int64_t start, std::int64_t end, std::int64_t correlation, std::int64_t process = kProcess,
                   const std::string& names = "1, 2, 3", const std::string& graph_node = "NULL") {
  return fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, 0, 1, 7, {}, {}, {}, 8,2,1, 128,1,1, {});",
                     start, end, correlation, global_thread_id(process, 0), names, graph_node);
}

std::string call(std::int64_t start, std::int64_t end, std::int64_t correlation, std::int64_t process = kProcess) {
  return fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, 0, {}, {}, 4, 0);", start, end,
                     global_thread_id(process, 11), correlation);
}

std::string nvtx_range_sql(std::int64_t start, const std::string& end, const std::string& text,
                           const std::string& text_id = "NULL", int type = 59) {
  return fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, {}, NULL, NULL, {}, {}, NULL, {}, 0);", start, end, type,
                     text, global_thread_id(kProcess, 11), text_id);
}

Trace read_expected_trace(const std::string& sql) {
  Result<Trace> trace = read_nsys_trace_bytes(sqlite_bytes("BEGIN;" + sql + "COMMIT;"));
  EXPECT_TRUE(trace) << trace.error().message;
  return trace ? *std::move(trace) : Trace();
}

TEST(NsysTrace, LinksAKernelToItsLaunch) {
  const Trace trace = read_expected_trace(kCreateTablesSql + kernel(1000, 1500, 42) + call(100, 120, 42));
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, EventKind::kernel);
  EXPECT_EQ(events[0].start_ns, 1000);
  EXPECT_EQ(events[0].duration_ns, 500);
  EXPECT_EQ(trace.kernel_classes.at(events[0].name_index).name, "_Z4gemmIfEvT_");
  EXPECT_EQ(trace.kernel_classes.at(events[0].name_index).grid, (std::array<std::uint32_t, 3>{8, 2, 1}));
  EXPECT_EQ(trace.kernel_classes.at(events[0].name_index).block, (std::array<std::uint32_t, 3>{128, 1, 1}));
  EXPECT_EQ(trace.kernel_queues.at(events[0].track_index).stream, 7u);
  EXPECT_EQ(events[1].kind, EventKind::api);
  EXPECT_EQ(events[1].correlation, events[0].correlation);
  EXPECT_EQ(trace.names.at(events[1].name_index).text, "cudaLaunchKernel_v7000");
  EXPECT_EQ(trace.threads.at(events[1].track_index).process, kProcess);
  EXPECT_EQ(trace.threads.at(events[1].track_index).thread, 11);
  EXPECT_EQ(trace.process, kProcess);
  EXPECT_EQ(trace.clock, TraceClock::since_start);
  EXPECT_EQ(trace.dropped_event_count, 0u);
}

TEST(NsysTrace, SessionStartConvertsToUnixTime) {
  const Trace trace =
      read_expected_trace(kCreateTablesSql + kernel(1000, 1500, 1) +
                          "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT, utcTime TEXT);"
                          "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, 'x');");
  EXPECT_EQ(trace.clock, TraceClock::unix_time);
  EXPECT_EQ(collect_events(trace).at(0).start_ns, 1'700'000'000'000'001'000);
}

TEST(NsysTrace, ReadsNamesAsTheVersionExportsThem) {
  const auto kernel_name_with_columns = [](const std::string& names) {
    const Trace trace = read_expected_trace(kCreateTablesSql + kernel(0, 1, 1, kProcess, names));
    return trace.kernel_classes.at(0).name;
  };
  EXPECT_EQ(kernel_name_with_columns("1, 2, NULL"), "gemm<float>(float)");
  EXPECT_EQ(kernel_name_with_columns("NULL, 2, NULL"), "gemm");
  EXPECT_EQ(kernel_name_with_columns("NULL, 99, NULL"), "unnamed kernel");
  EXPECT_EQ(kernel_name_with_columns("'a text', NULL, NULL"), "a text");
  const Trace trace_with_text_names = read_expected_trace(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, name TEXT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 'only');");
  EXPECT_EQ(trace_with_text_names.kernel_classes.at(0).name, "only");
}

TEST(NsysTrace, SeparatesIdsOfDifferentProcesses) {
  const Trace trace = read_expected_trace(kCreateTablesSql + kernel(0, 1, 5) + kernel(2, 3, 5, kOtherProcess) +
                                          call(0, 1, 5) + call(0, 1, 5, kOtherProcess));
  const std::vector<TraceEvent> events = collect_events(trace);
  EXPECT_EQ(events[0].correlation, events[2].correlation);
  EXPECT_EQ(events[1].correlation, events[3].correlation);
  EXPECT_NE(events[0].correlation, events[1].correlation);
  EXPECT_EQ(trace.process, std::nullopt);
}

TEST(NsysTrace, MapsGpuOrdinalsPerProcess) {
  const Trace trace =
      read_expected_trace(kCreateTablesSql + kernel(0, 1, 1) +
                          "CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT, uuid TEXT);"
                          "INSERT INTO TARGET_INFO_GPU VALUES (0, 'A', '00000000-0000-0000-0000-000000000000'),"
                          "  (1, 'B', 'GPU-1bdee8b4-22ac-536c-208b-bfb4ed38b878');"
                          "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INT, cudaId INT, pid INT);"
                          "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0, 100);");
  EXPECT_EQ(trace.kernel_queues.at(0).device, "GPU-1bdee8b4-22ac-536c-208b-bfb4ed38b878");
  ASSERT_EQ(trace.environment.size(), 2u);
  EXPECT_EQ(trace.environment[1].value, "B");
}

TEST(NsysTrace, CopiesAndFillsHaveTheirBytes) {
  const Trace trace = read_expected_trace(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, streamId INT, bytes INT, copyKind "
      "INT); INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 2, 0, 7, 4096, 1);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT, deviceId INT, streamId INT, bytes INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (3, 4, 0, 7, 64);");
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(trace.kernel_classes.at(events[0].name_index).name, "HtoD");
  EXPECT_EQ(trace.byte_counts.at(events[0].detail_index), 4096u);
  EXPECT_EQ(events[1].kind, EventKind::fill);
  EXPECT_EQ(trace.byte_counts.at(events[1].detail_index), 64u);
}

TEST(NsysTrace, OmitsAGraphWhoseKernelsAreTraced) {
  const std::string graphs =
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT, streamId INT, correlationId "
      "INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (10, 90, 0, 7, 3), (110, 190, 0, 7, 4);";
  const Trace trace = read_expected_trace(kCreateTablesSql + kernel(10, 20, 3, kProcess, "1, 2, 3", "17") + graphs);
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].kind, EventKind::graph);
  EXPECT_EQ(events[1].start_ns, 110);
}

TEST(NsysTrace, RangesAreAnnotations) {
  const Trace trace = read_expected_trace(
      kCreateTablesSql + kNvtxTableSql + nvtx_range_sql(0, "100", "'step'") + nvtx_range_sql(10, "50", "NULL", "5") +
      nvtx_range_sql(20, "30", "'started'", "NULL", 60) + nvtx_range_sql(5, "NULL", "'a mark'", "NULL", 34));
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(trace.names.at(events[0].name_index).text, "step");
  EXPECT_EQ(trace.names.at(events[1].name_index).text, "forward");
  EXPECT_EQ(trace.names.at(events[2].name_index).text, "started");
  for (const TraceEvent& event : events) EXPECT_EQ(event.kind, EventKind::annotation);
  EXPECT_EQ(trace.read_event_count, 4u);
}

TEST(NsysTrace, AnOpenRangeLastsUntilTheEnd) {
  const Trace trace =
      read_expected_trace(kCreateTablesSql + kNvtxTableSql + nvtx_range_sql(10, "NULL", "'open'") + kernel(0, 700, 1));
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].start_ns, 10);
  EXPECT_EQ(events[1].duration_ns, 690);
  EXPECT_TRUE(trace.diagnostics.contains("ranges_open"));
}

TEST(NsysTrace, RangesOfPyTorchAreOperationsWithSequenceNumbers) {
  const Trace trace = read_expected_trace(
      kCreateTablesSql + kNvtxTableSql +
      nvtx_range_sql(0, "9", "'aten::conv2d, seq = 12, op_id = 3, sizes = [[1], []]'") +
      nvtx_range_sql(10, "19", "'autograd::engine::evaluate_function: ConvolutionBackward0, seq = 12'") +
      nvtx_range_sql(11, "18", "'ConvolutionBackward0, seq = 12, op_id = 9'") +
      nvtx_range_sql(20, "29", "'aten::empty'"));
  const std::vector<TraceEvent> events = collect_events(trace);
  ASSERT_EQ(events.size(), 4u);
  for (const TraceEvent& event : events) EXPECT_EQ(event.kind, EventKind::op);
  EXPECT_EQ(trace.names.at(events[0].name_index).text, "aten::conv2d");
  EXPECT_EQ(events[0].detail_index, 13u);
  EXPECT_FALSE(events[0].is_backward);
  EXPECT_TRUE(events[1].is_backward);
  EXPECT_TRUE(events[2].is_backward);
  EXPECT_EQ(events[2].detail_index, 13u);
  EXPECT_EQ(events[3].detail_index, 0u);
}

TEST(NsysTrace, RangesOfXlaIdentifyTheirScope) {
  const Trace trace = read_expected_trace(
      kCreateTablesSql + kNvtxTableSql +
      nvtx_range_sql(0, "9", "'TSL:Thunk:#name=jit(step)/transpose(jvp(Net))/Dense_0/dot_general,hlo_op=dot.3#'") +
      nvtx_range_sql(10, "19", "'Thunk:#name=jit(step)/sgd/sub,hlo_op=fusion.1,hlo_module=jit_step#'"));
  const std::vector<TraceEvent> events = collect_events(trace);
  EXPECT_EQ(trace.names.at(events.at(0).name_index).scope, (scopes::OpScope{"backward", "Dense_0", "dot_general"}));
  EXPECT_EQ(trace.names.at(events.at(1).name_index).scope, (scopes::OpScope{"optimizer", "sgd", "sub"}));
}

TEST(NsysTrace, CountsInvalidRows) {
  const Trace trace =
      read_expected_trace(kCreateTablesSql + kernel(100, 50, 1) + kernel(100, 150, 2) + call(5, 4, 9) +
                          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end) VALUES ('soon', 'later');"
                          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, streamId) VALUES (1, 2, 'seven');");
  EXPECT_EQ(collect_events(trace).size(), 1u);
  EXPECT_EQ(trace.read_event_count, 5u);
  EXPECT_EQ(trace.dropped_event_count, 4u);
  EXPECT_TRUE(trace.diagnostics.contains("events_dropped"));
}

TEST(NsysTrace, AnotherDatabaseIsAnErrorWithARemedy) {
  const TemporaryDirectory folder;
  const Result<Trace> foreign_trace =
      read_nsys_trace(folder.write("a.sqlite", sqlite_bytes("CREATE TABLE places (url TEXT)")));
  ASSERT_FALSE(foreign_trace);
  EXPECT_NE(foreign_trace.error().remedy.find("nsys export"), std::string::npos);
  const Result<Trace> report = read_nsys_trace(folder.write("b.nsys-rep", "NVIDIA Nsight Systems report"));
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().remedy.find("nsys export"), std::string::npos);
}

TEST(NsysTrace, ADamagedTableGivesTheRowsBeforeTheDamage) {
  std::string rows;
  for (int i = 0; i < 4000; ++i) rows += kernel(i * 10, i * 10 + 5, i + 1);
  std::string bytes = sqlite_bytes("BEGIN;" + kCreateTablesSql + rows + "COMMIT;");
  for (std::size_t i = bytes.size() / 2; i < bytes.size() / 2 + 4096; ++i) bytes[i] = '\x7f';
  const Result<Trace> trace = read_nsys_trace_bytes(bytes);
  ASSERT_TRUE(trace);
  EXPECT_GT(collect_events(*trace).size(), 100u);
  EXPECT_TRUE(trace->diagnostics.contains("damaged_trace"));
}

}  // namespace
}  // namespace joulemap::ingest

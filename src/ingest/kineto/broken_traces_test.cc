// SPDX-License-Identifier: Apache-2.0
//
// Malformed traces, and traces split into blocks at the worst positions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ingest/kineto/kineto_reader.h"

namespace joulemap::ingest {
namespace {

std::string op(const std::string& name, const std::string& extra_members = "") {
  return fmt::format(
      R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 1, "tid": 2, "ts": 1669783687464181, "dur": 2{}}})", name,
      extra_members);
}
std::string kineto_json(const std::string& events) { return "{\"traceEvents\": [" + events + "]}"; }

using Names = std::vector<std::string>;
Names names_of(const Trace& trace) {
  Names names;
  for (const auto& block : trace.event_blocks) {
    for (const TraceEvent& event : block) names.push_back(trace.names[event.name_index].text);
  }
  return names;
}
std::string diagnostic_codes_of(const Trace& trace) {
  std::string codes;
  for (const Diagnostic& diagnostic : trace.diagnostics.list()) {
    codes += fmt::format("{} {};", diagnostic.code, diagnostic.count);
  }
  return codes;
}

TEST(BrokenKinetoTrace, AnEmptyListIsAnEmptyTrace) {
  const Trace trace = read_kineto_text("{\"traceEvents\": []}");
  EXPECT_EQ(trace.read_event_count, 0u);
  EXPECT_EQ(diagnostic_codes_of(trace), "");
  EXPECT_EQ(diagnostic_codes_of(read_kineto_text("[]")), "");
}

TEST(BrokenKinetoTrace, IgnoresAnEmptyObjectAtTheEnd) {
  const Trace trace = read_kineto_text(kineto_json(op("a") + ",{ }"));
  EXPECT_EQ(trace.read_event_count, 1u);
  EXPECT_EQ(diagnostic_codes_of(trace), "");
}

TEST(BrokenKinetoTrace, ABareListAByteOrderMarkAndOtherLineEndsAreRead) {
  EXPECT_EQ(names_of(read_kineto_text("[" + op("a") + ",\n" + op("b") + "]")), (Names{"a", "b"}));
  EXPECT_EQ(names_of(read_kineto_text("\xEF\xBB\xBF" + kineto_json(op("a")))), (Names{"a"}));
  EXPECT_EQ(
      names_of(read_kineto_text("{\r\n\"traceEvents\":\r\n[\r\n" + op("a") + "\r\n,\r\n" + op("b") + "\r\n]\r\n}")),
      (Names{"a", "b"}));
}

TEST(BrokenKinetoTrace, AcceptsMembersInAnyOrderWithAnyValue) {
  const std::string text = kineto_json(
      R"({"args": {"deep": [{"ph": "X", "name": "no event"}, [[{}]]], "External id": 9}, "dur": 1.5, )"
      R"("ts": 1669783687464181.25, "tid": 1, "pid": 2, "name": "\u0061\n\"b\"", "cat": "cpu_op", "ph": "X"},)" +
      op("c"));
  const Trace trace = read_kineto_text(text);
  EXPECT_EQ(names_of(trace), (Names{"a\n\"b\"", "c"}));
  EXPECT_EQ(trace.event_blocks[0][0].external_id, 9u);
  EXPECT_EQ(trace.event_blocks[0][0].start_ns, 1'669'783'687'464'181'250);
  EXPECT_EQ(trace.event_blocks[0][0].duration_ns, 1500);
  EXPECT_EQ(diagnostic_codes_of(trace), "");
}

TEST(BrokenKinetoTrace, RepairsAndReportsStrayQuotes) {
  const Trace trace = read_kineto_text(
      kineto_json(op("a") + "," + op("<lambda \"x\"> y") + "," +
                  op("c", R"(, "args": {"Concrete Inputs": ["say "hi"", "z"], "External id": 4})") + "," + op("d")));
  EXPECT_EQ(names_of(trace), (Names{"a", "<lambda \"x\"> y", "c", "d"}));
  EXPECT_EQ(trace.event_blocks[0][2].external_id, 4u);
  EXPECT_EQ(diagnostic_codes_of(trace), "import.events-repaired 2;");
}

TEST(BrokenKinetoTrace, AcceptsControlCharacters) {
  const Trace trace = read_kineto_text(kineto_json(op("a\n\tb\x01") + "," + op("c")));
  EXPECT_EQ(names_of(trace), (Names{"a\n\tb\x01", "c"}));
  EXPECT_EQ(diagnostic_codes_of(trace), "");
}

TEST(BrokenKinetoTrace, AnInvalidEventIsDroppedAlone) {
  for (const std::string broken :
       {R"({"ph": "X", "cat": "cpu_op", "name": "x", "pid": 1 2 3})", R"({"ph": "X" "cat"})", R"({"ph": })", "{", "}",
        "garbage", R"("text")", R"({"ph": "X", "name": "a", b", "pid": [}, "args": {"x": "y}})", "12",
        R"({"name": "no phase"})"}) {
    const Trace trace = read_kineto_text(kineto_json(op("a") + "," + broken + "," + op("b") + "," + op("c")));
    EXPECT_EQ(names_of(trace), (Names{"a", "b", "c"})) << broken;
    EXPECT_EQ(trace.dropped_event_count, 1u) << broken;
    EXPECT_EQ(trace.read_event_count, 4u) << broken;
    EXPECT_EQ(diagnostic_codes_of(trace), "import.events-dropped 1;") << broken;
  }
}

TEST(BrokenKinetoTrace, ReportsTheOffsetOfTheFirstDamage) {
  const std::string text = kineto_json(op("a") + ",garbage," + op("b"));
  const Trace trace = read_kineto_text(text);
  ASSERT_EQ(trace.diagnostics.list().size(), 1u);
  const std::string position = fmt::format("byte {} ", text.find("garbage"));
  EXPECT_NE(trace.diagnostics.list()[0].message.find(position), std::string::npos)
      << trace.diagnostics.list()[0].message;
}

TEST(BrokenKinetoTrace, DropsImpossibleTimes) {
  const auto make_timed_event = [](const std::string& ts, const std::string& dur) {
    return fmt::format(R"({{"ph": "X", "cat": "cpu_op", "name": "x", "pid": 1, "tid": 2, "ts": {}, "dur": {}}})", ts,
                       dur);
  };
  const Trace trace = read_kineto_text(kineto_json(
      op("a") + "," + make_timed_event("1", "-5") + "," + make_timed_event("1e300", "1") + "," +
      make_timed_event("1", "1e18") + "," + make_timed_event("nan", "1") + "," + make_timed_event("-7", "1") + "," +
      make_timed_event("123456789012345678901234567890", "1") + "," + make_timed_event("null", "1") + "," +
      R"({"ph": "X", "cat": "cpu_op", "name": "no length", "ts": 1},)" + op("b")));
  EXPECT_EQ(names_of(trace), (Names{"a", "b"}));
  EXPECT_EQ(trace.dropped_event_count, 8u);
  EXPECT_EQ(trace.read_event_count, 10u);
}

TEST(BrokenKinetoTrace, ANameThatEndsWithABackslashDoesNotSwallowTheNextEvent) {
  const Trace trace = read_kineto_text(kineto_json(op("a") + "," + op("C:\\") + "," + op("b") + "," + op("c")));
  EXPECT_EQ(names_of(trace), (Names{"a", "b", "c"}));
  EXPECT_EQ(trace.dropped_event_count, 1u);
  EXPECT_EQ(trace.read_event_count, 4u);
}

TEST(BrokenKinetoTrace, ReportsUnknownCategoriesWithoutDamage) {
  const Trace trace = read_kineto_text(
      kineto_json(op("a") + R"(, {"ph": "X", "cat": "quantum", "name": "q", "pid": 1, "tid": 1, "ts": 1, "dur": 1})"));
  EXPECT_EQ(diagnostic_codes_of(trace), "import.unknown-category 1;");
  EXPECT_EQ(trace.dropped_event_count, 0u);
}

// A trace that is hard to split: names and arguments contain text that looks like the boundary between two events.
std::string make_hard_to_split_trace(int events) {
  std::string events_json;
  for (int i = 0; i < events; ++i) {
    if (i > 0) events_json += i % 3 == 0 ? "," : i % 3 == 1 ? ",\n  " : " , ";
    const std::string list_json = R"([{"name": "}, {", "ph": 1}, {"name": "x"}, "},{\"ph\":\"X\""])";
    events_json += op(fmt::format("op{} {{}}[]", i), i % 4 == 0 ? R"(, "args": {"list": )" + list_json + "}" : "");
    if (i % 5 == 0)
      events_json += R"(, {"ph": "s", "id": 1, "name": "flow", "cat": "ac2g", "pid": 1, "tid": 2, "ts": 3})";
  }
  return "{\"schemaVersion\": 1, \"traceEvents\": [" + events_json + "], \"traceName\": \"t\"}";
}

TEST(BrokenKinetoTrace, BlocksOfAnySizeGiveTheSameTrace) {
  const std::string text = make_hard_to_split_trace(60);
  const Trace reference_trace = read_kineto_text(text, {.threads = 1});
  ASSERT_EQ(names_of(reference_trace).size(), 60u);
  EXPECT_EQ(diagnostic_codes_of(reference_trace), "");
  for (std::size_t bytes = 1; bytes < 1200; bytes += bytes < 300 ? 1 : 37) {
    for (const std::size_t threads : {1u, 3u}) {
      const Trace trace = read_kineto_text(text, {.block_bytes = bytes, .threads = threads});
      EXPECT_EQ(names_of(trace), names_of(reference_trace)) << bytes;
      EXPECT_EQ(trace.read_event_count, reference_trace.read_event_count) << bytes;
      EXPECT_EQ(diagnostic_codes_of(trace), "") << bytes;
    }
  }
}

TEST(BrokenKinetoTrace, ATraceCutAnywhereGivesItsContent) {
  const std::string text = make_hard_to_split_trace(12);
  const std::size_t list_position = text.find('[');
  const std::size_t end = text.rfind(']');
  std::size_t max_event_count = 0;
  for (std::size_t size = list_position + 1; size <= end; ++size) {
    const Trace trace = read_kineto_text(text.substr(0, size), {.block_bytes = 256, .threads = 2});
    EXPECT_TRUE(trace.diagnostics.contains("import.truncated")) << size;
    EXPECT_LE(trace.dropped_event_count, 1u) << size;
    EXPECT_GE(names_of(trace).size(), max_event_count) << size;
    max_event_count = names_of(trace).size();
  }
  EXPECT_EQ(max_event_count, 12u);
}

TEST(BrokenKinetoTrace, EventsLongerThanABlockAreRead) {
  const std::string long_args = R"(, "args": {"Call stack": ")" + std::string(3'000'000, 'x') + "\"}";
  const Trace trace = read_kineto_text(kineto_json(op("a", long_args) + "," + op("b") + "," + op("c", long_args)));
  EXPECT_EQ(names_of(trace), (Names{"a", "b", "c"}));
  EXPECT_EQ(diagnostic_codes_of(trace), "");
}

TEST(BrokenKinetoTrace, TerminatesOnDeepNestingAndEndlessStarts) {
  const Trace deeply_nested_trace =
      read_kineto_text("{\"traceEvents\": [" + op("a") + ",{\"ph\": " + std::string(3'000'000, '['));
  EXPECT_EQ(names_of(deeply_nested_trace), Names{"a"});
  std::string starts = "{\"traceEvents\": [";
  for (int i = 0; i < 100'000; ++i) starts += "{\"ph\":";
  EXPECT_TRUE(read_kineto_text(starts).diagnostics.contains("import.events-dropped"));
}

}  // namespace
}  // namespace joulemap::ingest

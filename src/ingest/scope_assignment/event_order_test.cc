// SPDX-License-Identifier: Apache-2.0
#include "ingest/scope_assignment/event_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace joulemap::ingest {
namespace {

// Events of three threads and two queues in no order (event i starts at i, i/2 or i/3 ns). A quarter of them is then
// moved to a position up to `max_displacement` later.
Trace shuffled_trace(std::mt19937& random, std::size_t max_displacement) {
  std::vector<TraceEvent> events(2000);
  for (std::size_t i = 0; i < events.size(); ++i) {
    events[i].start_ns = static_cast<std::int64_t>(i / (1 + random() % 3));
    events[i].duration_ns = static_cast<std::int64_t>(random() % 50);
    events[i].kind = random() % 3 == 0 ? EventKind::kernel : EventKind::op;
    events[i].track_index = static_cast<std::uint32_t>(random() % (is_on_gpu(events[i].kind) ? 2 : 3));
    events[i].correlation = static_cast<std::uint32_t>(i);
  }
  for (std::size_t i = 0; max_displacement > 0 && i < events.size() / 4; ++i) {
    const std::size_t source_index = random() % events.size();
    const std::size_t target_index = std::min(events.size() - 1, source_index + random() % (max_displacement + 1));
    std::rotate(events.begin() + static_cast<std::ptrdiff_t>(source_index),
                events.begin() + static_cast<std::ptrdiff_t>(source_index) + 1,
                events.begin() + static_cast<std::ptrdiff_t>(target_index) + 1);
  }
  Trace trace;
  trace.threads.resize(3);
  trace.kernel_queues.resize(2);
  for (const TraceEvent& event : events) {
    if (trace.event_blocks.empty() || random() % 300 == 0) trace.event_blocks.emplace_back();
    trace.event_blocks.back().push_back(event);
  }
  return trace;
}

void expect_in_order(const EventOrder& order, EventOrder::Track track, std::set<std::uint32_t>& seen_correlations) {
  for (std::size_t i = 0; i < track.size(); ++i) {
    const TraceEvent& event = order.event(track[i]);
    EXPECT_TRUE(seen_correlations.insert(event.correlation).second);
    if (i == 0) continue;
    const TraceEvent& previous_event = order.event(track[i - 1]);
    EXPECT_LE(previous_event.start_ns, event.start_ns);
    if (previous_event.start_ns == event.start_ns) {
      EXPECT_GE(previous_event.duration_ns, event.duration_ns);
    }
  }
}

TEST(EventOrder, SortsByTimeFromAnyPermutation) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    for (const std::size_t max_displacement : {0U, 3U, 31U, 33U, 400U, 2000U}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", astray " << max_displacement);
      std::mt19937 random(seed);
      Trace trace = shuffled_trace(random, max_displacement);
      EventOrder order(trace);
      order.sort_threads();
      order.sort_queues();
      std::set<std::uint32_t> seen_correlations;
      for (std::size_t thread = 0; thread < order.thread_count(); ++thread)
        expect_in_order(order, order.thread(thread), seen_correlations);
      for (std::size_t queue = 0; queue < order.queue_count(); ++queue)
        expect_in_order(order, order.queue(queue), seen_correlations);
      EXPECT_EQ(seen_correlations.size(), 2000U);
    }
  }
}

TEST(EventOrder, ReturnsTheFirstBeginAndTheLastEnd) {
  Trace trace;
  EXPECT_EQ(EventOrder(trace).time_extent().end_ns, 0);
  trace.threads.resize(1);
  trace.event_blocks = {{{.start_ns = 50, .duration_ns = 7}, {.start_ns = 20, .duration_ns = 100}, {.start_ns = 60}}};
  const EventOrder order(trace);
  EXPECT_EQ(order.time_extent().first_start_ns, 20);
  EXPECT_EQ(order.time_extent().last_start_ns, 60);
  EXPECT_EQ(order.time_extent().end_ns, 120);
  EXPECT_EQ(order.time_extent().longest_duration_ns, 100);
}

}  // namespace
}  // namespace joulemap::ingest

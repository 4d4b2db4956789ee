// SPDX-License-Identifier: Apache-2.0
#include "sampling/window_table.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace joulemap::sampling {
namespace {

struct VisitedWindows {
  std::vector<WindowId> begun_windows;
  std::vector<WindowId> gone;
};

VisitedWindows visit_windows(WindowTable& table) {
  VisitedWindows sweep_result;
  table.adopt_and_free_slots([&](WindowId window, std::int64_t) { sweep_result.begun_windows.push_back(window); },
                             [&](WindowId window) { sweep_result.gone.push_back(window); });
  return sweep_result;
}

TEST(WindowTable, AWindowEndsOnce) {
  WindowTable table(1);
  const WindowId window = table.begin();
  EXPECT_NE(window, 0u);
  EXPECT_EQ(table.end_ns(window), 0);
  EXPECT_TRUE(table.end(window));
  EXPECT_GT(table.end_ns(window), 0);
  EXPECT_FALSE(table.end(window));
}

TEST(WindowTable, AReleasedWindowIsUnknown) {
  WindowTable table(1);
  const WindowId window = table.begin();
  EXPECT_TRUE(table.release(window));
  EXPECT_FALSE(table.release(window));
  EXPECT_FALSE(table.end(window));
  const WindowId next_window = table.begin();  // uses the same slot
  EXPECT_NE(next_window, window);
  EXPECT_FALSE(table.end(window));
  EXPECT_TRUE(table.end(next_window));
}

TEST(WindowTable, ASweepReturnsBegunAndReleasedWindows) {
  WindowTable table(1);
  const WindowId open_window = table.begin();
  const WindowId unseen_window = table.begin();
  table.release(unseen_window);
  EXPECT_EQ(visit_windows(table).begun_windows, std::vector{open_window});
  EXPECT_TRUE(visit_windows(table).begun_windows.empty());
  table.mark_complete(open_window);
  table.release(open_window);
  EXPECT_FALSE(table.is_alive(open_window));
  EXPECT_EQ(visit_windows(table).gone, std::vector{open_window});
  EXPECT_TRUE(visit_windows(table).gone.empty());
}

TEST(WindowTable, WindowsOfAnotherEpochAreUnknown) {
  WindowTable parent(1);
  WindowTable child(2);
  const WindowId window = parent.begin();
  child.begin();
  EXPECT_FALSE(child.is_alive(window));
}

TEST(WindowTable, GrowsToManyWindowsAtTheSameTime) {
  WindowTable table(1);
  std::set<WindowId> windows;
  for (int i = 0; i < 5000; ++i) windows.insert(table.begin());
  EXPECT_EQ(windows.size(), 5000u);
  for (const WindowId window : windows) EXPECT_TRUE(table.end(window));
}

TEST(WindowTable, ThreadsNeverGetTheSameWindow) {
  WindowTable table(1);
  constexpr int kThreads = 4;
  constexpr int kRounds = 20'000;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  std::atomic<int> failure_count{0};
  std::atomic<bool> is_finished{false};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        const WindowId outer_window = table.begin();
        const WindowId inner_window = table.begin();
        const bool has_succeeded = outer_window != inner_window && table.end(inner_window) && table.end(outer_window) &&
                                   !table.end(inner_window) && table.release(outer_window) &&
                                   table.release(inner_window);
        if (!has_succeeded) ++failure_count;
      }
    });
  }
  std::thread engine([&] {
    while (!is_finished) visit_windows(table);
  });
  for (std::thread& thread : threads) thread.join();
  is_finished = true;
  engine.join();
  visit_windows(table);
  EXPECT_EQ(failure_count, 0);
}

}  // namespace
}  // namespace joulemap::sampling

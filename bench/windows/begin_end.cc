// SPDX-License-Identifier: Apache-2.0
//
// Overhead of a window for the measured program: nanoseconds for begin and end, from C++, on one thread and on several.
// Prints one line of JSON for each; run.py compares them with the limits.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <joulemap/joulemap.hpp>
#include <thread>
#include <vector>

namespace {

constexpr int kCallCount = 20'000;
constexpr int kRounds = 100;

// Fastest round, in nanoseconds per call: other load on the machine can only add to it.
template <class Call>
double fastest_call_ns(Call call) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCallCount; ++i) call();
    const std::chrono::duration<double, std::nano> elapsed_time = std::chrono::steady_clock::now() - start;
    rounds.push_back(elapsed_time.count() / kCallCount);
  }
  return *std::min_element(rounds.begin(), rounds.end());
}

void print_call_time(const char* call_name, double ns) {
  std::printf("{\"what\": \"%s\", \"ns\": %.1f}\n", call_name, ns);
}

void window() {
  joulemap::Window window("window");
  window.end();
}

double measure_contended_window_ns(unsigned other_thread_count) {
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < other_thread_count; ++i) {
    threads.emplace_back([&is_done] {
      while (!is_done) window();
    });
  }
  const double ns = fastest_call_ns(window);
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  return ns;
}

}  // namespace

int main() {
  if (jm_start(nullptr) != JM_OK) {
    std::fprintf(stderr, "begin_end: %s\n", jm_last_error());
    return 1;
  }
  print_call_time("begin, end and free", fastest_call_ns(window));
  print_call_time("begin, end and free, while another thread does the same", measure_contended_window_ns(1));
  print_call_time("region push and pop, not recorded",
                  fastest_call_ns([] { const joulemap::Region region("region"); }));
  print_call_time("step, not recorded", fastest_call_ns([] { jm_step(nullptr); }));
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "host.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <barrier>
#include <csignal>
#include <random>
#include <thread>
#include <vector>

#include "child_actions.h"
#include "joulemap/joulemap.h"
#include "slow_allocations.h"

namespace {

constexpr int kForkers = 2;
constexpr int kWorkers = 4;
constexpr int kMaxRegionDepth = 3;  // regions within regions

struct Host {
  std::barrier<> start{kForkers + kWorkers};
  std::atomic<int> forks_left;
  std::atomic<bool> has_failed{false};
  std::atomic<bool> has_host_ended{false};
  std::uint64_t seed = 0;
};

struct Forker {
  Host* host;
  std::uint64_t seed;
};

void* run_forker(void* argument) {
  const Forker& forker = *static_cast<Forker*>(argument);
  Host& host = *forker.host;
  disable_allocation_delays();
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(forker.seed));
  host.start.arrive_and_wait();
  // Some of them have state of their own in the library; the child's thread inherits it.
  if (random() % 2 == 0 && !measure_once()) host.has_failed = true;
  while (host.forks_left.fetch_sub(1) > 0 && !host.has_failed) {
    bool ends_thread = false;
    if (!fork_child(static_cast<ChildAction>(random() % kActionCount), ends_thread)) host.has_failed = true;
    if (ends_thread) return nullptr;  // in the child: the process ends with it
  }
  return nullptr;
}

// Windows that are open, ended, asked for, freed and lost.
void measure_windows(Host& host) {
  std::vector<jm_window> open_windows;
  while (!host.has_host_ended) {
    open_windows.push_back(jm_begin("open"));
    if (open_windows.size() < 8) continue;
    jm_energy energy{};
    energy.size = sizeof energy;
    for (const jm_window window : open_windows) {
      jm_end(window);
      jm_window_peek(window, &energy);
      jm_window_free(window);
    }
    open_windows.clear();
  }
}

void open_regions(Host& host) {
  while (!host.has_host_ended) {
    for (int depth = 0; depth < kMaxRegionDepth; ++depth) jm_region_push("nested");
    jm_step(nullptr);
    jm_log("loss", 0.5);
    for (int depth = 0; depth < kMaxRegionDepth; ++depth) jm_region_pop();
  }
}

void start_and_end_threads(Host& host) {
  while (!host.has_host_ended) std::thread([] { measure_once(); }).join();
}

void start_and_stop(Host& host) {
  while (!host.has_host_ended) {
    jm_stop();
    for (int i = 0; i < 50 && !host.has_host_ended; ++i) measure_once();
  }
}

}  // namespace

int run_host(int forks, std::uint64_t seed) {
  std::signal(SIGUSR1, [](int) { handle_fork_signal(); });
  Host host{.forks_left = forks, .seed = seed};
  std::vector<std::thread> workers;
  for (void (*const work)(Host&) : {measure_windows, open_regions, start_and_end_threads, start_and_stop}) {
    workers.emplace_back([&host, work] {
      host.start.arrive_and_wait();
      work(host);
    });
  }
  std::array<Forker, kForkers> forkers{};
  std::array<pthread_t, kForkers> threads{};
  for (int i = 0; i < kForkers; ++i) {
    forkers[i] = {&host, seed * kForkers + static_cast<std::uint64_t>(i) + 1};
    ::pthread_create(&threads[i], nullptr, run_forker, &forkers[i]);
  }
  for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
  host.has_host_ended = true;
  for (std::thread& worker : workers) worker.join();
  return host.has_failed ? 1 : 0;
}

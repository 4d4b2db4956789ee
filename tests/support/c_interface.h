// SPDX-License-Identifier: Apache-2.0
//
// Test fixture: a program that uses the C interface on a simulated machine.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "base/file_descriptor.h"
#include "joulemap/joulemap.h"
#include "support/temporary_directory.h"

namespace joulemap {

inline bool last_error_contains(const char* text) {
  return std::string(jm_last_error()).find(text) != std::string::npos;
}

// A machine with one package, whose counter the test advances.
class CInterface : public testing::Test {
 protected:
  CInterface() {
    machine_.write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
    machine_.write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n");
    machine_.write("sys/class/powercap/intel-rapl:0/energy_uj", "000001000000\n");
  }
  ~CInterface() override { jm_stop(); }

  void raise_counter() {
    counter_uj_ += 1'000'000;
    // One write without truncation: the sensor's thread reads concurrently.
    const std::string text = fmt::format("{:012}\n", counter_uj_);
    const FileDescriptor file(::open(counter_path().c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::pwrite(file.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  std::string counter_path() const { return machine_.path() + "/sys/class/powercap/intel-rapl:0/energy_uj"; }
  double counter_j() const { return static_cast<double>(counter_uj_) * 1e-6; }
  jm_options options() const { return {sizeof(jm_options), "powercap", machine_.path().c_str(), 0.001}; }
  void start() const {
    const jm_options start_options = options();
    ASSERT_EQ(jm_start(&start_options), JM_OK) << jm_last_error();
  }
  // Waits until the sensor's thread has seen a change of the test; fails after 30 s.
  template <class Condition>
  static void wait_until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "the counter was never read: " << jm_last_error();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // Raises the counter until an open window shows energy.
  void raise_counter_until_seen(jm_window window) {
    wait_until([&] {
      raise_counter();
      jm_energy energy = {sizeof energy};
      return jm_window_peek(window, &energy) == JM_OK && energy.joules > 0;
    });
  }
  // Returns an ended window in which energy was used.
  jm_window measured_window() {
    const jm_window window = jm_begin("work");
    EXPECT_NE(window, 0u) << jm_last_error();
    raise_counter_until_seen(window);
    EXPECT_EQ(jm_end(window), JM_OK) << jm_last_error();
    return window;
  }

  TemporaryDirectory machine_;
  std::uint64_t counter_uj_ = 1'000'000;
};

}  // namespace joulemap

// SPDX-License-Identifier: Apache-2.0
//
// A program of the C interface on a machine that the test makes.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "joulemap/joulemap.h"
#include "support/temporary_directory.h"

namespace joulemap {

inline bool last_error_holds(const char* text) { return std::string(jm_last_error()).find(text) != std::string::npos; }

// A machine with one package whose counter moves when the test says so.
class CInterface : public testing::Test {
 protected:
  CInterface() {
    machine_.write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
    machine_.write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n");
    raise_counter();
  }
  ~CInterface() override { jm_stop(); }

  void raise_counter() {
    counter_uj_ += 1'000'000;
    machine_.write("sys/class/powercap/intel-rapl:0/energy_uj", fmt::format("{}\n", counter_uj_));
  }
  double counter_j() const { return static_cast<double>(counter_uj_) * 1e-6; }
  jm_options options() const { return {sizeof(jm_options), "powercap", machine_.path().c_str(), 0.001}; }
  void start() const {
    const jm_options wanted = options();
    ASSERT_EQ(jm_start(&wanted), JM_OK) << jm_last_error();
  }
  // Until the counter was seen to rise within an open window.
  void use_energy(jm_window window) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    jm_energy energy = {sizeof energy};
    do {
      raise_counter();
      ASSERT_EQ(jm_window_peek(window, &energy), JM_OK) << jm_last_error();
      ASSERT_LT(std::chrono::steady_clock::now(), until) << "the counter was never read";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (!(energy.joules > 0));
  }
  // A window in which energy was used.
  jm_window measured_window() {
    const jm_window window = jm_begin("work");
    EXPECT_NE(window, 0u) << jm_last_error();
    use_energy(window);
    EXPECT_EQ(jm_end(window), JM_OK) << jm_last_error();
    return window;
  }

  TemporaryDirectory machine_;
  std::uint64_t counter_uj_ = 0;
};

}  // namespace joulemap

// SPDX-License-Identifier: Apache-2.0
//
// Tests programs that misuse the C interface, or were compiled for another version of it.
#include "joulemap/joulemap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "support/c_interface.h"

namespace joulemap {
namespace {

TEST_F(CInterface, RefusesOptionsThatHaveNoMeaning) {
  jm_options start_options = options();
  start_options.sensors = "none-such";
  EXPECT_EQ(jm_start(&start_options), JM_USAGE);
  EXPECT_TRUE(last_error_contains("none-such")) << jm_last_error();
  start_options = options();
  for (const double period_s : {-1.0, 1e-9, 61.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    start_options.period_s = period_s;
    EXPECT_EQ(jm_start(&start_options), JM_USAGE) << period_s;
    EXPECT_TRUE(last_error_contains("period_s")) << jm_last_error();
  }
  start_options = options();
  for (const std::size_t size : {std::size_t{0}, sizeof(std::size_t), sizeof start_options - 1, std::size_t{1} << 40}) {
    start_options.size = size;
    EXPECT_EQ(jm_start(&start_options), JM_USAGE) << size;
    EXPECT_TRUE(last_error_contains("size")) << jm_last_error();
  }
}

// Options of a program of a later version, with one more member.
struct LaterProgramOptions {
  jm_options known;
  double later = 0;
};

TEST_F(CInterface, AcceptsOptionsOfANewerProgramUnlessUnknownOnesAreSet) {
  LaterProgramOptions later_options{options()};
  later_options.known.size = sizeof later_options;
  later_options.later = 1;
  EXPECT_EQ(jm_start(&later_options.known), JM_USAGE);
  EXPECT_TRUE(last_error_contains("does not support")) << jm_last_error();
  char* text = nullptr;
  EXPECT_EQ(jm_doctor_json(&later_options.known, &text), JM_USAGE);
  later_options.later = 0;
  EXPECT_EQ(jm_start(&later_options.known), JM_OK) << jm_last_error();
}

TEST_F(CInterface, RefusesNullAndStructuresWithoutASize) {
  start();
  const jm_window window = measured_window();
  EXPECT_EQ(jm_window_wait(window, nullptr), JM_USAGE);
  EXPECT_EQ(jm_window_peek(window, nullptr), JM_USAGE);
  jm_energy energy = {};
  EXPECT_EQ(jm_window_wait(window, &energy), JM_USAGE);
  energy.size = SIZE_MAX;
  EXPECT_EQ(jm_window_peek(window, &energy), JM_USAGE);
  energy.size = sizeof energy;
  ASSERT_EQ(jm_window_wait(window, &energy), JM_OK);
  EXPECT_EQ(jm_window_domain(0, nullptr), JM_USAGE);
  jm_domain domain = {};
  EXPECT_EQ(jm_window_domain(0, &domain), JM_USAGE);
  EXPECT_EQ(jm_window_diagnostic(0, nullptr), JM_USAGE);
  EXPECT_EQ(jm_doctor_json(nullptr, nullptr), JM_USAGE);
  jm_text_free(nullptr);
  jm_window_free(window);
  const jm_window unnamed_window = jm_begin(nullptr);
  EXPECT_NE(unnamed_window, 0u);
  EXPECT_EQ(jm_end(unnamed_window), JM_OK);
  jm_window_free(unnamed_window);
}

TEST_F(CInterface, FillsOnlyTheMembersThatAnOlderProgramKnows) {
  start();
  const jm_window window = measured_window();
  struct {
    std::size_t size = 2 * sizeof(std::size_t);
    double elapsed_s = 0;
    double after = 42;
  } old_energy;
  ASSERT_EQ(jm_window_wait(window, reinterpret_cast<jm_energy*>(&old_energy)), JM_OK) << jm_last_error();
  EXPECT_EQ(old_energy.size, 2 * sizeof(std::size_t));
  EXPECT_GT(old_energy.elapsed_s, 0);
  EXPECT_EQ(old_energy.after, 42);
  jm_window_free(window);
}

}  // namespace
}  // namespace joulemap

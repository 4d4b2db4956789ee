// SPDX-License-Identifier: Apache-2.0
//
// Tests every function of the C interface, through the shipped library libjoulemap.so.
#include "joulemap/joulemap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>

#include "support/c_interface.h"
#include "support/sysroots.h"

namespace joulemap {
namespace {

TEST_F(CInterface, ReturnsItsVersion) { EXPECT_STREQ(jm_version(), JOULEMAP_VERSION); }

TEST_F(CInterface, MeasuresAWindowAndListsItsDomains) {
  start();
  const jm_window window = measured_window();
  jm_energy energy = {sizeof energy};
  ASSERT_EQ(jm_window_wait(window, &energy), JM_OK) << jm_last_error();
  EXPECT_EQ(energy.size, sizeof energy);
  EXPECT_EQ(energy.provenance, JM_MEASURED) << energy.reason;
  EXPECT_GT(energy.joules, 0);
  EXPECT_LE(energy.joules, counter_j());
  EXPECT_EQ(energy.joules, energy.measured_j);
  EXPECT_TRUE(std::isnan(energy.estimated_j));
  EXPECT_GT(energy.uncertainty_j, 0);
  EXPECT_DOUBLE_EQ(energy.elapsed_s, static_cast<double>(energy.end_ns - energy.begin_ns) * 1e-9);
  EXPECT_DOUBLE_EQ(energy.mean_w, energy.joules / energy.elapsed_s);
  EXPECT_STREQ(energy.reason, "");
  ASSERT_EQ(energy.domains, 1u);
  jm_domain domain = {sizeof domain};
  ASSERT_EQ(jm_window_domain(0, &domain), JM_OK) << jm_last_error();
  EXPECT_STREQ(domain.name, "package-0");
  EXPECT_STREQ(domain.sensor, "powercap");
  EXPECT_STREQ(domain.part_of, "");
  EXPECT_EQ(domain.provenance, JM_MEASURED);
  EXPECT_EQ(domain.counted, 1);
  EXPECT_EQ(domain.joules, energy.joules);
  EXPECT_EQ(jm_window_domain(1, &domain), JM_USAGE);
  EXPECT_EQ(jm_window_domain(SIZE_MAX, &domain), JM_USAGE);
  jm_window_free(window);
}

TEST_F(CInterface, ReportsWhyThereIsNoEnergy) {
  const std::string root = sysroot("frozen-counter");
  const jm_options start_options = {sizeof start_options, "powercap", root.c_str(), 0};
  ASSERT_EQ(jm_start(&start_options), JM_OK) << jm_last_error();
  const jm_window window = jm_begin("still");
  ASSERT_EQ(jm_end(window), JM_OK);
  jm_energy energy = {sizeof energy};
  ASSERT_EQ(jm_window_wait(window, &energy), JM_OK) << jm_last_error();
  EXPECT_EQ(energy.provenance, JM_UNKNOWN);
  EXPECT_TRUE(std::isnan(energy.joules) && std::isnan(energy.uncertainty_j) && std::isnan(energy.mean_w));
  EXPECT_STRNE(energy.reason, "");
  jm_window_free(window);
}

TEST_F(CInterface, ReportsFaultsInTheDataOfAWindow) {
  start();
  const jm_window window = jm_begin("cut short");
  raise_counter_until_seen(window);
  ASSERT_EQ(::unlink(counter_path().c_str()), 0);
  jm_energy energy = {sizeof energy};
  wait_until([&] { return jm_window_peek(window, &energy) == JM_OK && energy.diagnostics > 0; });
  jm_diagnostic diagnostic = {sizeof diagnostic};
  ASSERT_EQ(jm_window_diagnostic(0, &diagnostic), JM_OK) << jm_last_error();
  EXPECT_GT(diagnostic.count, 0u);
  EXPECT_STREQ(diagnostic.code, "sensor_vanished");
  EXPECT_STRNE(diagnostic.message, "");
  EXPECT_EQ(jm_window_diagnostic(energy.diagnostics, &diagnostic), JM_USAGE);
  jm_window_free(window);
}

TEST_F(CInterface, WithoutASensorAWindowHasItsTimeAndAReason) {
  const std::string root = sysroot("no-sensors");
  const jm_options start_options = {sizeof start_options, "powercap", root.c_str(), 0};
  ASSERT_EQ(jm_start(&start_options), JM_OK) << jm_last_error();
  const jm_window window = jm_begin("empty");
  ASSERT_EQ(jm_end(window), JM_OK);
  jm_energy energy = {sizeof energy};
  ASSERT_EQ(jm_window_wait(window, &energy), JM_OK);
  EXPECT_GE(energy.elapsed_s, 0);
  EXPECT_EQ(energy.domains, 0u);
  EXPECT_STRNE(energy.reason, "");
  jm_window_free(window);
}

TEST_F(CInterface, AWindowEndsOnceAndIsReleasedOnce) {
  start();
  const jm_window window = jm_begin("once");
  EXPECT_EQ(jm_end(window), JM_OK);
  EXPECT_EQ(jm_end(window), JM_NOT_FOUND);
  jm_window_free(window);
  jm_window_free(window);
  jm_energy energy = {sizeof energy};
  EXPECT_EQ(jm_end(window), JM_NOT_FOUND);
  EXPECT_EQ(jm_window_wait(window, &energy), JM_NOT_FOUND);
  EXPECT_EQ(jm_window_peek(window, &energy), JM_NOT_FOUND);
  const jm_window reused_window = jm_begin("next");  // reuses the slot of the freed window with another id
  EXPECT_NE(reused_window, window);
  EXPECT_EQ(jm_end(window), JM_NOT_FOUND);
  EXPECT_EQ(jm_end(reused_window), JM_OK);
  jm_window_free(reused_window);
}

TEST_F(CInterface, WindowsThatNeverExistedAreUnknown) {
  start();
  for (const jm_window window : {jm_window{0}, jm_window{7}, std::numeric_limits<jm_window>::max()}) {
    jm_energy energy = {sizeof energy};
    EXPECT_EQ(jm_end(window), JM_NOT_FOUND);
    EXPECT_EQ(jm_window_wait(window, &energy), JM_NOT_FOUND);
    EXPECT_EQ(jm_window_peek(window, &energy), JM_NOT_FOUND);
    jm_window_free(window);
  }
}

TEST_F(CInterface, AnOpenWindowCanBePeekedButNotAwaited) {
  start();
  const jm_window window = jm_begin("open");
  jm_energy energy = {sizeof energy};
  EXPECT_EQ(jm_window_wait(window, &energy), JM_USAGE);
  ASSERT_EQ(jm_window_peek(window, &energy), JM_OK) << jm_last_error();
  EXPECT_EQ(energy.settled, 0);
  EXPECT_GE(energy.end_ns, energy.begin_ns);
  jm_window_free(window);  // without jm_end
  EXPECT_EQ(jm_end(window), JM_NOT_FOUND);
}

TEST_F(CInterface, AnotherThreadMayEndQueryAndReleaseAWindow) {
  start();
  const jm_window window = jm_begin("of two threads");
  std::thread([window] {
    EXPECT_EQ(jm_end(window), JM_OK) << jm_last_error();
    jm_energy energy = {sizeof energy};
    EXPECT_EQ(jm_window_wait(window, &energy), JM_OK) << jm_last_error();
    jm_window_free(window);
  }).join();
  EXPECT_EQ(jm_end(window), JM_NOT_FOUND);
}

TEST_F(CInterface, DomainsAndErrorsArePerThread) {
  start();
  const jm_window window = measured_window();
  jm_energy energy = {sizeof energy};
  ASSERT_EQ(jm_window_wait(window, &energy), JM_OK);
  EXPECT_EQ(jm_end(0), JM_NOT_FOUND);
  EXPECT_STRNE(jm_last_error(), "");
  std::thread([] {
    EXPECT_STREQ(jm_last_error(), "");
    jm_domain domain = {sizeof domain};
    EXPECT_EQ(jm_window_domain(0, &domain), JM_USAGE);
    jm_diagnostic diagnostic = {sizeof diagnostic};
    EXPECT_EQ(jm_window_diagnostic(0, &diagnostic), JM_USAGE);
  }).join();
  jm_window_free(window);
}

TEST_F(CInterface, StartsOnceAndStopsRepeatedly) {
  start();
  const jm_options start_options = options();
  EXPECT_EQ(jm_start(&start_options), JM_USAGE);
  EXPECT_EQ(jm_start(nullptr), JM_USAGE);
  EXPECT_EQ(jm_stop(), JM_OK);
  EXPECT_EQ(jm_stop(), JM_OK);
  EXPECT_EQ(jm_start(&start_options), JM_OK) << jm_last_error();
}

TEST_F(CInterface, EndedWindowsCanBeQueriedAfterAStop) {
  start();
  const jm_window ended_window = measured_window();
  jm_energy energy_before_stop = {sizeof energy_before_stop};
  ASSERT_EQ(jm_window_wait(ended_window, &energy_before_stop), JM_OK);
  const jm_window open_window = jm_begin("open");
  jm_stop();
  jm_energy energy_after_stop = {sizeof energy_after_stop};
  ASSERT_EQ(jm_window_wait(ended_window, &energy_after_stop), JM_OK) << jm_last_error();
  EXPECT_EQ(energy_after_stop.begin_ns, energy_before_stop.begin_ns);
  EXPECT_EQ(energy_after_stop.end_ns, energy_before_stop.end_ns);
  EXPECT_EQ(jm_window_wait(open_window, &energy_after_stop), JM_USAGE);
  EXPECT_EQ(jm_end(open_window), JM_OK);
  EXPECT_EQ(jm_window_wait(open_window, &energy_after_stop), JM_OK) << jm_last_error();
  jm_window_free(ended_window);
  jm_window_free(open_window);
}

TEST_F(CInterface, AWindowAfterAStopStartsWithTheLastOptions) {
  start();
  jm_stop();
  const jm_window window = measured_window();
  jm_energy energy = {sizeof energy};
  ASSERT_EQ(jm_window_wait(window, &energy), JM_OK) << jm_last_error();
  EXPECT_EQ(energy.domains, 1u);
  EXPECT_EQ(jm_start(nullptr), JM_USAGE);  // jm_begin has started it again
  jm_window_free(window);
}

TEST_F(CInterface, WithoutOptionsTheEnvironmentNamesTheMachine) {
  ::setenv("JOULEMAP_SYSROOT", machine_.path().c_str(), 1);
  ::setenv("JOULEMAP_SENSORS", "powercap", 1);
  EXPECT_EQ(jm_start(nullptr), JM_OK) << jm_last_error();
  ::unsetenv("JOULEMAP_SYSROOT");
  ::unsetenv("JOULEMAP_SENSORS");
  const jm_window window = measured_window();
  jm_energy energy = {sizeof energy};
  ASSERT_EQ(jm_window_wait(window, &energy), JM_OK);
  EXPECT_EQ(energy.domains, 1u);
  jm_window_free(window);
}

TEST_F(CInterface, MarksOutsideOfARecordingDoNothing) {
  EXPECT_EQ(jm_is_recording(), 0);
  const std::int64_t number = 7;
  for (const char* name : {"region", "", static_cast<const char*>(nullptr)}) {
    EXPECT_EQ(jm_region_push(name), JM_OK);
    EXPECT_EQ(jm_region_pop(), JM_OK);
    EXPECT_EQ(jm_log(name, std::nan("")), JM_OK);
  }
  EXPECT_EQ(jm_step(nullptr), JM_OK);
  EXPECT_EQ(jm_step(&number), JM_OK);
  const std::int64_t negative_number = -3;
  EXPECT_EQ(jm_step(&negative_number), JM_USAGE);
  EXPECT_EQ(jm_epoch(&negative_number), JM_USAGE);
  EXPECT_EQ(jm_epoch(nullptr), JM_OK);
  EXPECT_EQ(jm_epoch(&number), JM_OK);
}

TEST_F(CInterface, TheDoctorReportsTheGivenMachine) {
  const jm_options doctor_options = options();
  char* text = nullptr;
  ASSERT_EQ(jm_doctor_json(&doctor_options, &text), JM_OK) << jm_last_error();
  ASSERT_NE(text, nullptr);
  EXPECT_NE(std::strstr(text, "joulemap.doctor/1"), nullptr);
  EXPECT_NE(std::strstr(text, "package-0"), nullptr);
  jm_text_free(text);
  jm_options unknown = options();
  unknown.sensors = "none-such";
  text = nullptr;
  EXPECT_EQ(jm_doctor_json(&unknown, &text), JM_USAGE);
  EXPECT_EQ(text, nullptr);
}

}  // namespace
}  // namespace joulemap

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "report/json/doctor_json.h"
#include "report/text/doctor_text.h"
#include "support/golden.h"

namespace joulemap::report {
namespace {

DoctorResult make_result() {
  DoctorResult result;
  result.version = "0.0.0";
  result.host = {"bare metal", "", false};
  Channel package;
  package.name = package.domain = "package-0";
  package.sensor = "powercap";
  package.source = "/sys/class/powercap/intel-rapl:0/energy_uj";
  SensorStatus powercap{"powercap", SensorState::measured, "1 energy counters in /sys/class/powercap", "", {package},
                        {}};
  powercap.diagnostics.add({"counter_still", 1, "no change within 50 ms: package-0", "wait and see"});
  SensorStatus perf{"perf_event",
                    SensorState::denied,
                    "perf_event_open power/energy-pkg/ on CPU 0: Permission denied (perf_event_paranoid is 2)",
                    "sudo setcap cap_perfmon+ep /usr/bin/joulemap\nor the second step",
                    {},
                    {}};
  SensorStatus hwmon{"hwmon", SensorState::absent, "no device in /sys/class/hwmon reports energy or power", "", {}, {}};
  result.sensors = {perf, powercap, hwmon};
  return result;
}

TEST(DoctorTextReport, ShowsStateReasonAndRemedyOfEverySensor) {
  expect_golden("doctor.txt", doctor_text(make_result()));
}

TEST(DoctorTextReport, PrintsItsVerdictFirst) {
  DoctorResult result = make_result();
  EXPECT_NE(doctor_text(result).find("Energy can be measured here."), std::string::npos);
  result.sensors.erase(result.sensors.begin() + 1);
  EXPECT_NE(doctor_text(result).find("but this user may not"), std::string::npos);
  result.sensors.erase(result.sensors.begin());
  EXPECT_NE(doctor_text(result).find("No energy can be measured or estimated here."), std::string::npos);
}

TEST(DoctorJsonReport, KeepsItsContract) { expect_golden("doctor.json", doctor_json(make_result()) + "\n"); }

}  // namespace
}  // namespace joulemap::report

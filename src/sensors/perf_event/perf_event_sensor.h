// SPDX-License-Identifier: Apache-2.0
//
// RAPL through perf_event_open: the kernel's counts have 64 bits, so they never wrap, and a read is one system call of
// a few hundred nanoseconds. Preferred over powercap for both reasons. Off with --sysroot, where the running kernel
// does not belong to the described machine.
#pragma once

#include "sensors/perf_event/rapl_pmu.h"
#include "sensors/sensor.h"

namespace joulemap::sensors {

ProbeResult probe_perf_event(const ProbeContext& context);

// Opens the counters of a PMU on the running kernel. Separate from the probe so that tests can describe their own PMU
// and let the kernel count something other than energy.
Result<std::unique_ptr<Sensor>> open_rapl_counters(const RaplPmu& pmu, const std::vector<RaplCounter>& counters);

}  // namespace joulemap::sensors

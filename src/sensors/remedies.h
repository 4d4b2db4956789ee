// SPDX-License-Identifier: Apache-2.0
//
// The exact lines that would make a sensor readable, for the machine at hand. Pure texts; `doctor` prints them.
//
// None of them makes RAPL readable for everybody: since PLATYPUS (CVE-2020-8694) that is known to leak
// secrets between users of a machine, which is why the kernel closed it in 5.10.
#pragma once

#include <string>
#include <string_view>

#include "model/sensor_status.h"

namespace joulemap::sensors {

// energy_uj is there but may not be read.
std::string remedy_for_denied_powercap(const HostKind& host, std::string_view program);

// perf_event_open refuses system-wide events.
std::string remedy_for_denied_perf_event(const HostKind& host, std::string_view program);

// There is no RAPL at all.
std::string reason_for_absent_rapl(const HostKind& host);
std::string remedy_for_absent_rapl(const HostKind& host);

}  // namespace joulemap::sensors

// SPDX-License-Identifier: Apache-2.0
//
// The exact commands that make a sensor readable on this machine; `doctor` prints them. Pure.
//
// None of them makes RAPL readable for all users: since PLATYPUS (CVE-2020-8694) that is known to leak secrets between
// users of a machine, which is why Linux 5.10 restricted it.
#pragma once

#include <string>
#include <string_view>

#include "model/sensor_status.h"

namespace joulemap::sensors {

// For a powercap counter (energy_uj) that exists but is not readable.
std::string remedy_for_denied_powercap(const HostTraits& host, std::string_view program);

// For a machine where perf_event_open denies system-wide events.
std::string remedy_for_denied_perf_event(const HostTraits& host, std::string_view program);

// For a machine without RAPL: why, and what to do.
std::string reason_for_absent_rapl(const HostTraits& host);
std::string remedy_for_absent_rapl(const HostTraits& host);

}  // namespace joulemap::sensors

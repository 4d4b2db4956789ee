// SPDX-License-Identifier: Apache-2.0
//
// The RAPL events of the kernel's perf subsystem, from /sys/bus/event_source/devices/power: type, configs, scales, and
// the CPUs to open them on (one for each package or die). Reads files only; opens no event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/system_root.h"
#include "model/channel.h"

namespace joulemap::sensors {

struct RaplEvent {
  std::string name;  // "energy-pkg"
  std::uint64_t config = 0;
  double joules_per_count = 0;  // joules per count
};

struct RaplPmu {
  std::uint32_t pmu_type = 0;
  std::vector<RaplEvent> events;
  std::vector<int> package_cpus;  // CPUs on which each event is opened: one for each package or die
};

// Returns a RaplPmu without events if the folder has none; fails with not_found if the folder is missing.
Result<RaplPmu> read_rapl_pmu(const SystemRoot& root);

// "event=0x02" is 2. Other terms have no meaning for RAPL and are malformed.
std::optional<std::uint64_t> parse_event_config(std::string_view text);

// A counter to open. There is one for each event and CPU, but only one for the event of the whole platform.
struct RaplCounter {
  RaplEvent event;
  int cpu = 0;
  Channel channel;
};
std::vector<RaplCounter> list_rapl_counters(const RaplPmu& pmu, const SystemRoot& root);

}  // namespace joulemap::sensors

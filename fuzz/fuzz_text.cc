// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the parsers of small texts (numbers, CPU lists, /proc/stat): none may crash, and each result must satisfy what
// the parser's header guarantees.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/cpu_times.h"
#include "base/text.h"
#include "sensors/hwmon/hwmon_devices.h"
#include "sensors/perf_event/rapl_pmu.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace joulemap;
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  static_cast<void>(parse_u64(text));
  if (const auto number = parse_double(text)) JOULEMAP_CHECK(std::isfinite(*number), "a double that is not finite");
  if (const auto cpus = parse_cpu_list(text)) JOULEMAP_CHECK(!cpus->empty(), "an empty CPU list");
  for (const char c : quoted(text)) {
    const auto byte = static_cast<unsigned char>(c);
    JOULEMAP_CHECK(byte >= 32 && byte != 127, "a control character got through");
  }
  JOULEMAP_CHECK(to_valid_utf8(quoted(text, text.size())) == quoted(text, text.size()), "a quotation that is no UTF-8");
  const std::string valid = to_valid_utf8(text);
  JOULEMAP_CHECK(to_valid_utf8(valid) == valid, "not a fixed point");

  const auto busy = parse_busy_ticks(text);
  const Result<MachineCpuTime> machine = parse_machine_cpu_time(text, 100);
  JOULEMAP_CHECK(busy.has_value() == machine.has_value(), "two readers of /proc/stat disagree");
  if (machine) JOULEMAP_CHECK(machine->cpus >= 1 && machine->busy_s >= 0, "an impossible machine");
  if (const auto process = parse_process_cpu_time(text, 100)) {
    JOULEMAP_CHECK(process->process_cpu_s >= 0 && process->reaped_children_cpu_s >= 0, "negative CPU time");
  }
  static_cast<void>(sensors::parse_event_config(text));
  static_cast<void>(sensors::parse_hwmon_file_name(text));
  return 0;
}

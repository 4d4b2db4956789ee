// SPDX-License-Identifier: Apache-2.0
#include "sensors/perf_event/rapl_pmu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "base/small_file.h"
#include "base/text.h"
#include "sensors/rapl.h"

namespace joulemap::sensors {
namespace {

constexpr std::string_view kRaplPmuPath = "/sys/bus/event_source/devices/power";

struct RaplEventDomain {
  std::string_view event;
  std::string_view domain;
  DomainClass domain_class;
};

// Linux arch/x86/events/rapl.c. perf's "gpu" is powercap's "uncore".
constexpr std::array<RaplEventDomain, 5> kRaplEventDomains = {{
    {"energy-pkg", "package", DomainClass::cpu},
    {"energy-ram", "dram", DomainClass::memory},
    {"energy-cores", "core", DomainClass::other},
    {"energy-gpu", "uncore", DomainClass::other},
    {"energy-psys", "psys", DomainClass::platform},
}};

Error malformed_file_error(const std::string& path, std::string_view text) {
  return {ErrorCode::malformed, fmt::format("{}: cannot parse {}", path, quoted(trim(text))), {}};
}

// One event file with its .scale and .unit; nothing for events other than energy.
Result<std::optional<RaplEvent>> read_rapl_event(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name;
  Result<std::string> config_text = read_small_file(path);
  if (!config_text) return std::move(config_text).error();
  Result<std::string> unit = read_small_file(path + ".unit");
  if (!unit || trim(*unit) != "Joules") return std::optional<RaplEvent>{};
  Result<std::string> scale_text = read_small_file(path + ".scale");
  if (!scale_text) return std::move(scale_text).error();
  const auto config = parse_event_config(*config_text);
  if (!config) return malformed_file_error(path, *config_text);
  const auto scale = parse_double(*scale_text);
  if (!scale || *scale <= 0) return malformed_file_error(path + ".scale", *scale_text);
  return std::optional<RaplEvent>(RaplEvent{name, *config, *scale});
}

// "0", or "0-die-1" when several CPUs of the mask share a package.
std::map<int, std::string> domain_suffix_of_cpus(const RaplPmu& pmu, const SystemRoot& root) {
  const auto topology = [&](int cpu, std::string_view file) -> std::uint64_t {
    const std::string path = root.path(fmt::format("/sys/devices/system/cpu/cpu{}/topology/{}", cpu, file));
    const Result<std::string> text = read_small_file(path);
    return text ? parse_u64(*text).value_or(0) : 0;
  };
  std::map<std::uint64_t, int> cpus_in_package;
  for (const int cpu : pmu.package_cpus) ++cpus_in_package[topology(cpu, "physical_package_id")];
  std::map<int, std::string> domain_suffixes;
  for (const int cpu : pmu.package_cpus) {
    const std::uint64_t package = topology(cpu, "physical_package_id");
    domain_suffixes[cpu] = cpus_in_package[package] > 1 ? fmt::format("{}-die-{}", package, topology(cpu, "die_id"))
                                                        : fmt::format("{}", package);
  }
  return domain_suffixes;
}

}  // namespace

std::optional<std::uint64_t> parse_event_config(std::string_view text) {
  text = trim(text);
  constexpr std::string_view kEventTermPrefix = "event=";
  if (!text.starts_with(kEventTermPrefix)) return std::nullopt;
  return parse_u64(text.substr(kEventTermPrefix.size()));
}

Result<RaplPmu> read_rapl_pmu(const SystemRoot& root) {
  const std::string directory = root.path(kRaplPmuPath);
  Result<std::string> type_text = read_small_file(directory + "/type");
  if (!type_text) return std::move(type_text).error();
  const auto type = parse_u64(*type_text);
  if (!type || *type > UINT32_MAX) return malformed_file_error(directory + "/type", *type_text);
  RaplPmu pmu{static_cast<std::uint32_t>(*type), {}, {}};

  const Result<std::vector<std::string>> names = list_directory(directory + "/events");
  if (!names) return pmu;  // the kernel has the PMU, but found no RAPL on this machine
  for (const std::string& name : *names) {
    if (name.find('.') != std::string::npos) continue;
    Result<std::optional<RaplEvent>> event = read_rapl_event(directory + "/events", name);
    if (!event) return std::move(event).error();
    if (*event) pmu.events.push_back(std::move(**event));
  }
  const Result<std::string> mask = read_small_file(directory + "/cpumask");
  const auto cpus = mask ? parse_cpu_list(*mask) : std::nullopt;
  pmu.package_cpus = cpus.value_or(std::vector<int>{0});
  return pmu;
}

std::vector<RaplCounter> list_rapl_counters(const RaplPmu& pmu, const SystemRoot& root) {
  const std::map<int, std::string> domain_suffixes = domain_suffix_of_cpus(pmu, root);
  const bool has_platform = std::any_of(pmu.events.begin(), pmu.events.end(),
                                        [](const RaplEvent& event) { return event.name == "energy-psys"; });
  std::vector<RaplCounter> counters;
  for (const int cpu : pmu.package_cpus) {
    for (const RaplEventDomain& event_domain : kRaplEventDomains) {
      const auto event = std::find_if(pmu.events.begin(), pmu.events.end(),
                                      [&](const RaplEvent& candidate) { return candidate.name == event_domain.event; });
      if (event == pmu.events.end()) continue;
      const bool platform = event_domain.domain_class == DomainClass::platform;
      if (platform && cpu != pmu.package_cpus.front()) continue;
      Channel channel;
      channel.domain = platform ? std::string(event_domain.domain)
                                : fmt::format("{}-{}", event_domain.domain, domain_suffixes.at(cpu));
      channel.name = channel.domain;
      channel.sensor = "perf_event";
      channel.source = fmt::format("power/{}/ on CPU {}", event->name, cpu);
      channel.domain_class = event_domain.domain_class;
      if (event_domain.domain_class == DomainClass::other) {
        channel.part_of = fmt::format("package-{}", domain_suffixes.at(cpu));
      } else if (has_platform && !platform) {
        channel.part_of = "psys";
      }
      channel.scale = event->joules_per_count;
      channel.refresh_s = kRaplUpdatePeriod_s;
      counters.push_back({*event, cpu, std::move(channel)});
    }
  }
  return counters;
}

}  // namespace joulemap::sensors

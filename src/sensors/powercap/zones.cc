// SPDX-License-Identifier: Apache-2.0
#include "sensors/powercap/zones.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/small_file.h"
#include "base/text.h"

namespace joulemap::sensors {
namespace {

constexpr std::string_view kPowercapClassPath = "/sys/class/powercap";

std::string_view control_type_of_zone(std::string_view id) { return id.substr(0, id.find(':')); }

std::string parent_zone_id(std::string_view id) {
  const std::size_t last_colon = id.rfind(':');
  const std::size_t first_colon = id.find(':');
  return last_colon == first_colon ? std::string() : std::string(id.substr(0, last_colon));
}

// "package-0-die-1" and "core" give "core-0-die-1"; a parent of another name gives "core-<parent>".
std::string make_subdomain_name(std::string_view name, std::string_view parent_domain) {
  constexpr std::string_view kPackage = "package";
  if (parent_domain.starts_with(kPackage))
    return std::string(name) + std::string(parent_domain.substr(kPackage.size()));
  return std::string(name) + "-" + std::string(parent_domain);
}

std::string make_unique_name(std::string base_name, const std::set<std::string>& taken_names) {
  if (!taken_names.contains(base_name)) return base_name;
  int number = 1;
  while (taken_names.contains(base_name + "-" + std::to_string(number))) ++number;
  return base_name + "-" + std::to_string(number);
}

// True if the text is safe to print: zone names appear in reports.
bool is_safe_to_print(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
}

// The number of the top zone of an id: "1" for "intel-rapl:1:0".
std::string_view top_zone_number(std::string_view id) {
  id.remove_prefix(std::min(id.find(':') + 1, id.size()));
  return id.substr(0, id.find(':'));
}

DomainClass domain_class_of_zone(std::string_view name) {
  if (name.starts_with("package")) return DomainClass::cpu;
  if (name == "dram") return DomainClass::memory;
  if (name == "psys") return DomainClass::platform;
  return DomainClass::other;
}

}  // namespace

Result<std::vector<PowercapZone>> find_powercap_zones(const SystemRoot& root) {
  const std::string top = root.path(kPowercapClassPath);
  Result<std::vector<std::string>> zone_ids = list_directory(top);
  if (!zone_ids) {
    if (zone_ids.error().code == ErrorCode::not_found) return std::vector<PowercapZone>{};
    return std::move(zone_ids).error();
  }
  std::vector<PowercapZone> zones;
  for (const std::string& id : *zone_ids) {
    if (id.find(':') == std::string::npos) continue;  // the control type itself
    PowercapZone zone;
    zone.id = id;
    zone.directory = top + "/" + id;
    zone.is_duplicate = control_type_of_zone(id).ends_with("-mmio");
    const Result<std::string> name = read_small_file(zone.directory + "/name");
    if (name && is_safe_to_print(trim(*name))) zone.name = std::string(trim(*name));
    zones.push_back(std::move(zone));
  }
  std::stable_partition(zones.begin(), zones.end(), [](const PowercapZone& zone) { return !zone.is_duplicate; });
  assign_zone_domains(zones);
  return zones;
}

void assign_zone_domains(std::vector<PowercapZone>& zones) {
  std::map<std::string, std::string> domains_by_zone_id;
  std::map<std::string, std::set<std::string>, std::less<>>
      taken_names;  // by control type: a duplicate zone may have the same domain name
  std::string platform;
  for (PowercapZone& zone : zones) {
    zone.domain_class = domain_class_of_zone(zone.name);
    const auto parent = domains_by_zone_id.find(parent_zone_id(zone.id));
    std::string base_name = zone.name;
    if (zone.name.empty()) {
      base_name = zone.id;
    } else if (parent != domains_by_zone_id.end()) {
      base_name = make_subdomain_name(zone.name, parent->second);
    } else if (!parent_zone_id(zone.id).empty()) {
      base_name = zone.name + "-" + std::string(top_zone_number(zone.id));
    }
    std::set<std::string>& names = taken_names[std::string(control_type_of_zone(zone.id))];
    zone.domain = make_unique_name(base_name, names);
    names.insert(zone.domain);
    domains_by_zone_id[zone.id] = zone.domain;
    const bool is_separate_domain =
        zone.domain_class != DomainClass::other;  // DRAM is a subzone of the package, not a part
    if (parent != domains_by_zone_id.end() && !is_separate_domain) zone.part_of = parent->second;
    if (zone.domain_class == DomainClass::platform && platform.empty()) platform = zone.domain;
  }
  for (PowercapZone& zone : zones) {
    if (zone.part_of.empty() && zone.domain != platform) zone.part_of = platform;
  }
}

}  // namespace joulemap::sensors

// SPDX-License-Identifier: Apache-2.0
//
// The zones of /sys/class/powercap: the domain of each, and which contains which. Reads names only, which are
// world-readable on every kernel, and no energy.
//
//   intel-rapl:0        package-0   -> domain package-0
//   intel-rapl:0:0      core        -> domain core-0, part of package-0
//   intel-rapl:0:1      dram        -> domain dram-0 (not inside package-0, although its folder is)
//   intel-rapl:1        psys        -> domain psys; packages and drams are part of it
//   intel-rapl-mmio:0   package-0   -> domain package-0 again, through another interface: a cross-check
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/system_root.h"
#include "model/channel.h"

namespace joulemap::sensors {

struct PowercapZone {
  std::string id;             // "intel-rapl:0:1": the colons give the parents
  std::string directory;      // full path
  std::string name;           // name that the kernel gives the zone: "dram"
  bool is_duplicate = false;  // a zone of intel-rapl-mmio, which another control type also shows

  std::string domain;
  std::string part_of;
  DomainClass domain_class = DomainClass::other;
};

// In natural order, duplicates last. An empty list when there is no powercap; an error when it cannot be listed.
Result<std::vector<PowercapZone>> find_powercap_zones(const SystemRoot& root);

// Fills in domain, part_of and domain_class from ids and names. Pure.
void assign_zone_domains(std::vector<PowercapZone>& zones);

}  // namespace joulemap::sensors

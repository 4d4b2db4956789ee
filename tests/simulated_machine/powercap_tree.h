// SPDX-License-Identifier: Apache-2.0
//
// The folders, links and constant files of Linux's powercap framework with its intel-rapl driver, under a root of our
// own. CounterFile writes the counters in it (energy_uj).
//
//   sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/{name,energy_uj,...}
//   sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/intel-rapl:0:0/...
//   sys/class/powercap/{intel-rapl,intel-rapl:0,intel-rapl:0:0,...}     links to these folders
//   sys/devices/system, proc                                            links to this machine's
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace joulemap::simulated {

// A folder with a counter.
struct Zone {
  std::string id;      // "intel-rapl:0:1"
  std::string folder;  // "intel-rapl/intel-rapl:0/intel-rapl:0:1", below powercap/
  std::string name;    // "dram", as in the file of that name
  std::string domain;  // "dram-0", as in the truth log
  bool has_limit = false;
};

// In the order of the truth log's columns: package, core and dram of each socket, then psys.
std::vector<Zone> list_zones(int sockets, bool with_psys);

// Below the root: "sys/devices/virtual/powercap" and "sys/class/powercap".
std::string powercap_devices_folder(const std::string& root);
std::string powercap_class_folder(const std::string& root);

std::string energy_path(const std::string& root, const Zone& zone);

struct TreeSettings {
  std::uint64_t wrap_uj = 0;
  double limit_w = 0;
};

// Creates everything except the counters. Refuses a root that already has a sys or a proc: it might be a real one.
Status build_powercap_tree(const std::string& root, const std::vector<Zone>& zones, const TreeSettings& settings);

}  // namespace joulemap::simulated

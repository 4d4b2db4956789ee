// SPDX-License-Identifier: Apache-2.0
//
// The energy and power files of /sys/class/hwmon and the domain of each. Reads names and labels only.
//
//   amdgpu       power1_average (or _input)   -> amdgpu-0, a GPU, counted
//   i915, xe     energy1_input                -> intel-gpu-0, a GPU, counted
//   amd_energy   energyN_input, "EsocketN"    -> package-N, the same as RAPL's
//   anything else                             -> listed by its name, never part of a total: its coverage is unknown
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/system_root.h"
#include "model/channel.h"

namespace joulemap::sensors {

struct HwmonFile {
  std::string path;
  Channel channel;
};

// Empty when there is no hwmon, or none with energy or power.
Result<std::vector<HwmonFile>> find_hwmon_files(const SystemRoot& root);

// Parsed file name: "energy2_input" is a counter with index 2; "temp1_input" gives nullopt. Power is a gauge, from
// `_average` or `_input`.
struct HwmonFileName {
  ChannelKind channel_kind = ChannelKind::gauge;
  std::string channel_index;
  bool is_average = false;
};
std::optional<HwmonFileName> parse_hwmon_file_name(std::string_view name);

}  // namespace joulemap::sensors

// SPDX-License-Identifier: Apache-2.0
//
// PowerLog: power and energy sampled by other tools, as channels and samples of a recording. Read from
//
// - CSV with the header time_unix_ns,domain,kind,value: kind energy_j (a counter) or power_w; the time is when the read
//   returned; domains have joulemap's names (package-0, dram-0, gpu0, psys);
// - logs of nvidia-smi --query-gpu=timestamp,index,uuid,power.draw,... --format=csv[,noheader,nounits] -lms N. Their
//   times are local times with the UTC offset `utc_offset_s`; if that is empty, in the time zone of this machine.
//
// Invalid rows are dropped and counted. The whole log is in memory, 40 bytes per value. Times are Unix nanoseconds.
// Pure except for the time zone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/channel.h"
#include "model/diagnostics.h"
#include "model/sample.h"

namespace joulemap::ingest {

struct PowerLog {
  std::vector<Channel> channels;
  std::vector<Sample> samples;  // in time order within a channel
  std::uint64_t row_count = 0;
  std::uint64_t dropped_row_count = 0;
  Diagnostics diagnostics;
};

// Fails if the text has neither format. `name` identifies the log in messages.
Result<PowerLog> parse_power_log(std::string_view text, std::string_view name,
                                 std::optional<std::int64_t> utc_offset_s = {});
// Fails if the text is not a log of nvidia-smi.
Result<PowerLog> parse_nvidia_smi_log(std::string_view text, std::string_view name,
                                      std::optional<std::int64_t> utc_offset_s = {});

// Merges logs. If two contain the same channel, the first one is used and a diagnostic added.
PowerLog merge_power_logs(std::vector<PowerLog> logs);

}  // namespace joulemap::ingest

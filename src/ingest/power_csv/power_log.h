// SPDX-License-Identifier: Apache-2.0
//
// PowerLog: power and energy that somebody else sampled, as channels and samples of a recording. Read from
//
// - CSV with the header time_unix_ns,domain,kind,value: kind energy_j (a counter) or power_w; the time at which the read
//   returned; domains are called as ours (package-0, dram-0, gpu0, psys);
// - logs of nvidia-smi --query-gpu=timestamp,index,uuid,power.draw,... --format=csv[,noheader,nounits] -lms N. Its times are
//   those of a clock on the wall: `utc_offset_s` says of which, else this machine's zone is taken.
//
// A row that makes no sense is dropped and counted. Whole logs are held in memory, 40 bytes a value. Times are Unix
// nanoseconds. Pure but for the time zone.
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
  std::vector<Sample> samples;  // of one channel in order of time
  std::uint64_t rows = 0;
  std::uint64_t rows_dropped = 0;
  Diagnostics diagnostics;
};

// Fails when the text is neither. `name`: what messages call it.
Result<PowerLog> parse_power_log(std::string_view text, std::string_view name,
                                 std::optional<std::int64_t> utc_offset_s = {});
// Fails when it is not nvidia-smi's.
Result<PowerLog> parse_nvidia_smi_log(std::string_view text, std::string_view name,
                                      std::optional<std::int64_t> utc_offset_s = {});

// Puts logs together. Of a channel that two of them tell, the first is taken.
PowerLog join_power_logs(std::vector<PowerLog> logs);

}  // namespace joulemap::ingest

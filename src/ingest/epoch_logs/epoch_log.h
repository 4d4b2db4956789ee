// SPDX-License-Identifier: Apache-2.0
//
// EpochLog: the lines that a training program writes at the end of each epoch, with a header such as
// "epoch;precision;recall;accuracy;f1;timestamp"; separated by semicolons, commas or tabs, with any metrics. Timestamps
// are local times and converted to Unix nanoseconds. A timestamp in whole seconds was truncated, so half a second is
// added. Pure except for the machine's time zone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/diagnostics.h"

namespace joulemap::ingest {

struct EpochEnd {
  std::int64_t time_ns = 0;
  std::vector<std::optional<double>> metric_values;  // in the order of EpochLog::metrics
};

struct EpochLog {
  std::vector<std::string> metric_names;
  std::vector<EpochEnd> epoch_ends;  // in time order
  Diagnostics diagnostics;
};

// Fails without a header that contains epoch and timestamp. `name` identifies the log in messages. `utc_offset_s`: of
// the timestamps; empty: the time zone of this machine.
Result<EpochLog> parse_epoch_log(std::string_view text, std::string_view name,
                                 std::optional<std::int64_t> utc_offset_s = {});

// Whether larger values of the metric are better: its name contains neither loss, error, perplexity nor the like.
bool is_higher_better(std::string_view metric);

}  // namespace joulemap::ingest

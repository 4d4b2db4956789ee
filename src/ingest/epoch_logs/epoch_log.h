// SPDX-License-Identifier: Apache-2.0
//
// EpochLog: the lines that a training writes at the end of each epoch, "epoch;precision;recall;accuracy;f1;timestamp",
// or with commas or tabs and any metrics. Times are local times. Whole seconds were truncated, so half a second is
// added to them. Converted to Unix nanoseconds. Pure except for the time zone.
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
  std::vector<std::optional<double>> metrics;  // in the order of EpochLog::metrics
};

struct EpochLog {
  std::vector<std::string> metrics;
  std::vector<EpochEnd> epochs;  // in time order
  Diagnostics diagnostics;
};

// Fails without a header that contains epoch and timestamp. `name` identifies the log in messages.
Result<EpochLog> parse_epoch_log(std::string_view text, std::string_view name,
                                 std::optional<std::int64_t> utc_offset_s = {});

// Whether larger values of the metric are better: it is not a loss, an error or a perplexity.
bool is_higher_better(std::string_view metric);

}  // namespace joulemap::ingest

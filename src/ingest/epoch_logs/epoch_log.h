// SPDX-License-Identifier: Apache-2.0
//
// EpochLog: what a training wrote at the end of each epoch: "epoch;precision;recall;accuracy;f1;timestamp" and a line for
// each, or the same with commas or tabs and any metrics. Times are those of a clock on the wall; whole seconds are taken
// for their middle, since they were cut. Unix nanoseconds. Pure but for the time zone.
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
  std::vector<std::optional<double>> metrics;  // as in EpochLog::metrics
};

struct EpochLog {
  std::vector<std::string> metrics;
  std::vector<EpochEnd> epochs;  // in order of time
  Diagnostics diagnostics;
};

// Fails without a header that has epoch and timestamp. `name`: what messages call it.
Result<EpochLog> parse_epoch_log(std::string_view text, std::string_view name,
                                 std::optional<std::int64_t> utc_offset_s = {});

// Whether a metric of that name is one to be as large as possible: not a loss, an error, a perplexity.
bool more_is_better(std::string_view metric);

}  // namespace joulemap::ingest

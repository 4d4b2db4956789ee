// SPDX-License-Identifier: Apache-2.0
//
// The payload of an activity chunk: what ran in a time interval (model/activity.h), stored in columns. Pure; any
// thread.
//
// IDs repeat from step to step and are plain varints, which the compression of the chunk shrinks. Times are noisy and
// Rice coded: gaps between kernels, and durations as the difference to the last kernel of the same class and scope. A
// kernel of a training loop takes about three bytes. The unit of times is 2^time_unit_log2 ns. Start and duration of a
// kernel are exact to that unit; the GPU's own clock ticks every 32 ns.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/activity.h"

namespace joulemap::recording {

inline constexpr unsigned kKernelTimeUnitLog2 = 5;
// Limits per chunk. They bound the memory of a reader, independent of the file's content.
inline constexpr std::size_t kMaxKernelsPerChunk = std::size_t{1} << 18;
inline constexpr std::size_t kMaxRowsPerChunk = std::size_t{1} << 18;  // of each other list

// The activity must be within these limits and its names must fit into a chunk: see split_activity. The unit of times
// is 2^time_unit_log2 ns.
std::string encode_activity(const Activity& activity, unsigned time_unit_log2 = kKernelTimeUnitLog2);

// Splits an activity into parts that each fit into a chunk.
std::vector<Activity> split_activity(Activity activity);

struct DecodedActivity {
  Activity activity;
  std::uint64_t unknown_scope_count = 0;  // number of skipped scopes and classes of a kind from a newer version
};
// Returns nullopt if the payload is invalid.
std::optional<DecodedActivity> decode_activity(std::string_view payload);

}  // namespace joulemap::recording

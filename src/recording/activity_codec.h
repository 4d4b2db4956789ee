// SPDX-License-Identifier: Apache-2.0
//
// The payload of an activity chunk: what ran in a stretch of time (model/activity.h), as columns. Pure; any thread.
//
// Ids repeat from step to step and are written as plain varints, which the chunk's compression folds away; times are
// noise and are Rice coded: gaps between kernels, and durations against the last one of the same class and place. A kernel
// of a training loop takes about three bytes. Times are kept in units of 2^time_shift ns; a kernel's start is exact to
// that, and so is its duration: a GPU's own clock ticks every 32 ns.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/activity.h"

namespace joulemap::recording {

inline constexpr unsigned kKernelTimeShift = 5;
// In one chunk: what bounds the memory of a reader, whatever a file says.
inline constexpr std::size_t kMostKernelsPerChunk = std::size_t{1} << 18;
inline constexpr std::size_t kMostRowsPerChunk = std::size_t{1} << 18;  // of each other list

// At most those numbers of rows, and names of a size that fits: see split_activity.
// Times are kept in units of 2^time_shift ns.
std::string encode_activity(const Activity& activity, unsigned time_shift = kKernelTimeShift);

// The same, in parts that fit into a chunk each.
std::vector<Activity> split_activity(Activity activity);

struct DecodedActivity {
  Activity activity;
  std::uint64_t unknown = 0;  // places and classes of a kind that only a newer version knows: left out
};
// Nothing when the payload makes no sense.
std::optional<DecodedActivity> decode_activity(std::string_view payload);

}  // namespace joulemap::recording

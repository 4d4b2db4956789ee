// SPDX-License-Identifier: Apache-2.0
//
// Splits an Activity of any size into parts that each fit into a chunk.
#include <algorithm>
#include <iterator>

#include "recording/activity_codec.h"

namespace joulemap::recording {
namespace {

// Limits of a part, in rows and bytes, which keep its payload far below kMaxPayloadBytes.
constexpr std::size_t kMaxWrittenRowsPerChunk = std::size_t{1} << 16;
constexpr std::size_t kMaxWrittenQueuesPerChunk = 1000;
constexpr std::size_t kMaxWrittenNameBytesPerChunk = std::size_t{4} << 20;
constexpr std::size_t kFixedFieldBytes = 64;

// Moves up to `max_rows` rows from one list to another.
template <class Row>
void move_rows(std::vector<Row>& source_rows, std::vector<Row>& target_rows, std::size_t max_rows) {
  const auto end = source_rows.begin() + static_cast<std::ptrdiff_t>(std::min(max_rows, source_rows.size()));
  target_rows.assign(std::make_move_iterator(source_rows.begin()), std::make_move_iterator(end));
  source_rows.erase(source_rows.begin(), end);
}

template <class Named>
void move_rows_within_byte_limit(std::vector<Named>& source_rows, std::vector<Named>& target_rows, std::size_t& bytes) {
  std::size_t rows = 0;
  for (; rows < source_rows.size() && bytes < kMaxWrittenNameBytesPerChunk; ++rows)
    bytes += kFixedFieldBytes + source_rows[rows].name.size();
  move_rows(source_rows, target_rows, rows);
}

template <class Named>
std::size_t estimate_name_bytes(const std::vector<Named>& rows) {
  std::size_t bytes = 0;
  for (const Named& row : rows) bytes += kFixedFieldBytes + row.name.size();
  return bytes;
}

// Whether the activity fits into one part, as nearly all do.
bool fits_into_one_chunk(const Activity& activity) {
  const bool rows_fit =
      activity.scope_tallies.size() <= kMaxWrittenRowsPerChunk &&
      activity.kernel_tallies.size() <= kMaxWrittenRowsPerChunk && activity.steps.size() <= kMaxWrittenRowsPerChunk &&
      activity.kernels.size() <= kMaxWrittenRowsPerChunk && activity.shares.size() <= kMaxWrittenRowsPerChunk &&
      activity.waits.size() <= kMaxWrittenRowsPerChunk && activity.queues.size() <= kMaxWrittenQueuesPerChunk;
  return rows_fit &&
         estimate_name_bytes(activity.scopes) + estimate_name_bytes(activity.classes) < kMaxWrittenNameBytesPerChunk;
}

}  // namespace

std::vector<Activity> split_activity(Activity activity) {
  std::vector<Activity> parts;
  if (fits_into_one_chunk(activity)) {
    if (!activity.empty()) parts.push_back(std::move(activity));
    return parts;
  }
  while (!activity.empty()) {
    Activity& part = parts.emplace_back();
    part.begin_ns = activity.begin_ns;
    part.end_ns = activity.end_ns;
    std::size_t name_bytes = 0;
    move_rows_within_byte_limit(activity.scopes, part.scopes, name_bytes);
    move_rows_within_byte_limit(activity.classes, part.classes, name_bytes);
    move_rows(activity.queues, part.queues, kMaxWrittenQueuesPerChunk);
    move_rows(activity.scope_tallies, part.scope_tallies, kMaxWrittenRowsPerChunk);
    move_rows(activity.kernel_tallies, part.kernel_tallies, kMaxWrittenRowsPerChunk);
    move_rows(activity.steps, part.steps, kMaxWrittenRowsPerChunk);
    move_rows(activity.kernels, part.kernels, kMaxWrittenRowsPerChunk);
    move_rows(activity.shares, part.shares, kMaxWrittenRowsPerChunk);
    move_rows(activity.waits, part.waits, kMaxWrittenRowsPerChunk);
  }
  return parts;
}

}  // namespace joulemap::recording

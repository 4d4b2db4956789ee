// SPDX-License-Identifier: Apache-2.0
//
// StepRows: what ran on each device (CPU, GPU, stream) in a trace of a TensorFlow 1 session, from either of its file
// formats. A row is one execution of a node or kernel. Plain data and the functions that read it; pure. Times are
// nanoseconds of the file's clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace joulemap::ingest {

// Stores each distinct text once.
class DistinctStrings {
 public:
  std::uint32_t intern(std::string_view text) {
    const auto [slot, is_new] = indices_.try_emplace(std::string(text), static_cast<std::uint32_t>(texts_.size()));
    if (is_new) texts_.push_back(slot->first);
    return slot->second;
  }
  const std::string& operator[](std::uint32_t index) const { return texts_[index]; }

 private:
  std::unordered_map<std::string, std::uint32_t> indices_;
  std::vector<std::string> texts_;
};

struct StepRow {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t device = 0;  // index in StepRows::texts, as are node, op and kernel:
                             // "/job:localhost/replica:0/task:0/device:GPU:0/stream:all"
  std::uint32_t node = 0;    // "dense/MatMul"
  std::uint32_t op = 0;      // "MatMul"
  std::uint32_t kernel = 0;  // on a stream: name and launch sizes of the kernel; the empty text if unknown
};

struct StepRows {
  bool found = false;  // the bytes have the format that the function reads
  DistinctStrings texts;
  std::vector<StepRow> rows;
  std::uint64_t skipped_events = 0;          // events that are not rows: tensors, metadata
  std::uint64_t rows_without_time = 0;       // rows without a valid time
  std::uint64_t rows_of_unnamed_device = 0;  // rows of a device that the file does not name
  std::uint64_t damaged = 0;                 // entries that could not be parsed
  bool is_truncated = false;                 // the end of the file is missing
};

StepRows read_timeline(std::string_view json);
StepRows read_run_metadata(std::string_view bytes);

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// StepRows: what a session of TensorFlow 1 says ran, whichever of its files told it: rows of devices. Plain data and the
// functions that read it; pure. Times are nanoseconds, as the file has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace joulemap::ingest {

// What repeats, once.
class Texts {
 public:
  std::uint32_t index(std::string_view text) {
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
  std::uint32_t device = 0;  // these are indices of texts: "/job:localhost/replica:0/task:0/device:GPU:0/stream:all"
  std::uint32_t node = 0;    // "dense/MatMul"
  std::uint32_t op = 0;      // "MatMul"
  std::uint32_t kernel = 0;  // on a GPU, the text that the driver's tracer made of it; empty where it is not known
};

struct StepRows {
  bool found = false;  // it is such a file
  Texts texts;
  std::vector<StepRow> rows;
  std::uint64_t skipped = 0;   // events that are no rows: tensors, metadata
  std::uint64_t timeless = 0;  // rows without a time that makes sense
  std::uint64_t homeless = 0;  // rows of a device that the file does not name
  std::uint64_t damaged = 0;   // what could not be read
  bool is_cut = false;         // the end is missing
};

StepRows rows_of_timeline(std::string_view json);
StepRows rows_of_run_metadata(std::string_view bytes);

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// NodeExecutions: what ran on each device (CPU, GPU, stream) in traces of a TensorFlow 1 session, from either of its file
// formats. A row is one execution of a node or kernel; each StepStats, and each timeline, is a step. Plain data and the
// functions that read it; pure. Times are nanoseconds of the file's clock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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

struct NodeExecution {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t device = 0;   // index in NodeExecutions::texts, as are the following:
                              // "/job:localhost/replica:0/task:0/device:GPU:0/stream:all"
  std::uint32_t node = 0;     // "dense/MatMul"
  std::uint32_t op = 0;       // "MatMul"
  std::uint32_t kernel = 0;   // on a stream: name and launch sizes of the kernel; the empty text if unknown
  std::uint32_t tensors = 0;  // input tensors (scopes/tensor_text.h); the empty text if unknown
  std::uint32_t step = 0;     // number of the step, from 0
};

// Finds the input tensors of each node of a step: traces contain the names of a node's inputs, and the tensors that each
// node puts out.
class NodeInputTensors {
 public:
  // `tensor`: "node" or "node:1". `type_name`: as scopes::TensorText accepts it; "resource" for what is not a tensor.
  void add_output(std::string_view tensor, std::string_view type, std::string shape);
  // `inputs`: names of tensors, separated by commas; names of control inputs begin with '^'.
  void add_inputs(std::string_view node, std::string_view inputs);
  // The text for the inputs of the node; empty if a tensor is unknown.
  std::string find_input_tensors(std::string_view node) const;

 private:
  struct Tensor {
    std::string type_name;
    std::string shape_text;
  };
  std::map<std::string, Tensor, std::less<>> output_by_tensor_;
  std::map<std::string, std::string, std::less<>> inputs_by_node_;
};

struct NodeExecutions {
  DistinctStrings interned_texts;
  std::vector<NodeExecution> rows;
  std::uint32_t steps = 0;
  std::uint64_t skipped_event_count = 0;     // events that are not rows: tensors, metadata
  std::uint64_t rows_without_time = 0;       // rows without a valid time
  std::uint64_t rows_of_unnamed_device = 0;  // rows of a device that the file does not name
  std::uint64_t damaged_message_count = 0;   // entries that could not be parsed
  bool is_truncated = false;                 // the end of a file is missing

  // Sets the input tensors of the rows from `first_row` on, which are those of one step.
  void set_tensors(std::size_t first_row, const NodeInputTensors& tensors);
};

// Add the rows of a file to `result`. Return false if the bytes do not have the format.
bool read_timeline(std::string_view json, NodeExecutions& result);
bool read_run_metadata(std::string_view bytes, NodeExecutions& result);

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// XPlaneOperations: finds which events of an XPlane trace are operations, and the scope of each: TensorFlow's nodes,
// stages of tf.data, instructions of XLA programs, on the CPU and on a GPU. Waiting, scheduling and enclosing events
// are not operations. The trace's bytes must outlive it. Used by one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ingest/graph_names.h"
#include "ingest/xplane/hlo_program.h"
#include "ingest/xplane/string_view_cache.h"
#include "ingest/xplane/xplane_reader.h"
#include "scopes/op_names.h"

namespace joulemap::ingest {

struct XOperation {
  std::string name;  // as in the trace: "model/dense/MatMul", "fusion.3"
  scopes::OpScope scope;
};

class XPlaneOperations {
 public:
  explicit XPlaneOperations(GraphNames graph_names) : graph_names_(std::move(graph_names)) {}

  // Called from XPlaneVisitor::on_program.
  void add_program(std::string_view name, std::string_view hlo_proto) { hlo_protos_[name] = hlo_proto; }

  // Returns the number of the operation that the event is; nullopt if it is none. `is_input_pipeline`: the event is on
  // a thread of tf.data.
  std::optional<std::uint32_t> find_or_add_host_operation(const XEvent& event, bool is_input_pipeline);
  // Returns the number of the operation that an event on a device stream belongs to; nullopt if it is unknown.
  std::optional<std::uint32_t> find_or_add_kernel_operation(const XEvent& event);

  // A CUDA graph of a program.
  struct CudaGraphKey {
    std::int64_t program = 0;
    std::string_view module;
    std::string_view name;  // "command_buffer_3"
    friend bool operator==(const CudaGraphKey&, const CudaGraphKey&) = default;
    friend bool operator<(const CudaGraphKey& a, const CudaGraphKey& b) {
      return std::tie(a.program, a.module, a.name) < std::tie(b.program, b.module, b.name);
    }
  };
  // Returns the graph that the event is part of; nullopt if it is in none.
  static std::optional<CudaGraphKey> find_graph_of_kernel(const XEvent& event);
  // Returns the operation of each kernel. `kernels`: names, in graph order. Call it for the graphs of a program in the
  // order of their numbers. Returns nullopt if the kernels do not match the program: then only their names are known.
  std::optional<std::vector<std::uint32_t>> find_graph_operations(const CudaGraphKey& graph,
                                                                  std::span<const std::string_view> kernels);

  const XOperation& operator[](std::uint32_t number) const { return operations_[number]; }
  std::size_t size() const { return operations_.size(); }

  static bool is_input_pipeline(std::string_view thread_name) { return thread_name.starts_with("tf_data_"); }

 private:
  struct Key {
    std::int64_t program = 0;
    std::string_view module;
    std::string_view name;
    std::string_view kernel;   // of an instruction in a CUDA graph; of a node, its type
    std::string_view tensors;  // of a node: shapes of its inputs, as in the trace
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  std::uint32_t find_or_add_instruction(const Key& key);
  std::uint32_t find_or_add_tensorflow_node(std::string_view name, std::string_view type, std::string_view tensors);
  std::optional<std::uint32_t> parse_tensorflow_op(std::string_view op_name_and_type, std::string_view tensors);
  XOperation make_instruction_operation(const Key& key);
  scopes::OpScope scope_of_node(std::string_view node, std::string_view type) const;
  XOperation make_node_operation(std::string_view name, std::string_view type, std::string_view tensors) const;
  const HloProgram& find_hlo_program(std::int64_t number, std::string_view module);

  template <class Make>
  std::uint32_t find_or_add_operation(const Key& key, Make make);

  GraphNames graph_names_;
  std::map<std::string_view, std::string_view> hlo_protos_;
  std::map<std::pair<std::string_view, std::int64_t>, HloProgram> programs_;
  // By program: where each schedule continues after the graphs matched so far.
  std::map<std::pair<std::string_view, std::int64_t>, std::vector<std::size_t>> schedule_positions_;
  std::unordered_map<Key, std::uint32_t, KeyHash> operation_numbers_;
  StringViewCache<3> hlo_instruction_cache_;  // instructions, by name, module and kernel
  std::vector<XOperation> operations_;
};

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// HloProgram: maps each instruction of a program that XLA compiled to its source operation. A trace contains only
// instruction names ("fusion.3"); the program embedded in it (an HloProto) has the origin. Views point into the bytes
// given. Field numbers: xla/service/hlo.proto, xla/xla_data.proto. Pure; damaged instructions are omitted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace joulemap::ingest {

struct HloOrigin {
  std::string_view op_name;  // "jit(step)/jvp(Net)/Dense_0/dot_general"
  std::string_view op_type;  // "MatMul", from TensorFlow
};

class HloProgram {
 public:
  static HloProgram read(std::string_view hlo_proto);

  // nullptr for an instruction that is not in the program, or whose origin the compiler dropped.
  const HloOrigin* find_instruction_origin(std::string_view instruction) const;
  // Input tensors of an instruction (tensor_text.h); empty if the program lacks them.
  std::string format_input_tensors(std::string_view instruction) const;
  // For each computation, the instructions that run on a device, in order of execution.
  const std::vector<std::vector<std::string_view>>& schedules() const { return schedules_; }
  // Whether some instructions of the program compute gradients.
  bool computes_gradients() const { return computes_gradients_; }

 private:
  struct Instruction {
    std::string_view name;
    HloOrigin origin;
    std::vector<std::uint64_t> called_computation_ids;  // ids of computations
    std::vector<std::uint64_t> operand_ids;             // ids of instructions
    std::string_view shape_proto;                       // ShapeProto of the result
    std::int64_t id = 0;
    bool is_executed = true;  // false for opcodes that run nothing themselves: parameter, tuple, while
  };

  void add_computation(std::string_view bytes);
  void add_operand_shapes(const std::vector<Instruction>& instructions);
  Instruction read_instruction(std::string_view bytes);
  void inherit_names_from_callees();
  void add_schedule(std::string_view sequence);

  std::unordered_map<std::string_view, HloOrigin> origin_by_instruction_;
  std::unordered_map<std::string_view, std::vector<std::string_view>>
      operand_shapes_by_instruction_;  // by instruction: shapes of operands
  std::vector<Instruction> instructions_without_path_;
  std::unordered_map<std::uint64_t, std::unordered_map<std::string_view, std::size_t>>
      op_name_counts_;  // by computation: instructions with each op_name
  std::unordered_map<std::int64_t, std::string_view>
      executed_instruction_names_;  // names of executed instructions, by id
  std::vector<std::vector<std::string_view>> schedules_;
  bool computes_gradients_ = false;
};

}  // namespace joulemap::ingest

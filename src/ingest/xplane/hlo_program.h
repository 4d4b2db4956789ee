// SPDX-License-Identifier: Apache-2.0
//
// HloProgram: which operation of the source each instruction of a program that XLA compiled comes from. A trace names
// instructions ("fusion.3"); the program that lies in it (an HloProto) knows more. Views point into the bytes given.
// Field numbers: xla/service/hlo.proto, xla/xla_data.proto. Pure; damaged bytes cost the instructions they hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace joulemap::ingest {

struct HloOrigin {
  std::string_view op_name;  // "jit(step)/jvp(Net)/Dense_0/dot_general"
  std::string_view op_type;  // "MatMul", of TensorFlow
};

class HloProgram {
 public:
  static HloProgram read(std::string_view hlo_proto);

  // nullptr for an instruction that is not in the program, or whose origin the compiler forgot.
  const HloOrigin* origin_of(std::string_view instruction) const;
  // What an instruction is given (tensor_text.h); empty where the program does not tell.
  std::string tensors_of(std::string_view instruction) const;
  // The instructions that become work of a device, in the order in which each computation runs them.
  const std::vector<std::vector<std::string_view>>& schedules() const { return schedules_; }
  // Some of its instructions compute gradients.
  bool trains() const { return trains_; }

 private:
  struct Instruction {
    std::string_view name;
    HloOrigin origin;
    std::vector<std::uint64_t> called;    // computations
    std::vector<std::uint64_t> operands;  // ids
    std::string_view shape;               // of its result, a ShapeProto
    std::int64_t id = 0;
    bool is_work = true;  // else it only names or moves around what others make
  };

  void add_computation(std::string_view bytes);
  void add_inputs(const std::vector<Instruction>& instructions);
  Instruction read_instruction(std::string_view bytes);
  void name_after_what_they_call();
  void add_schedule(std::string_view sequence);

  std::unordered_map<std::string_view, HloOrigin> origins_;
  std::unordered_map<std::string_view, std::vector<std::string_view>> inputs_;  // by instruction: shapes
  std::vector<Instruction> nameless_;
  std::unordered_map<std::uint64_t, std::unordered_map<std::string_view, std::size_t>> names_in_;  // by computation
  std::unordered_map<std::int64_t, std::string_view> work_;                                        // names by id
  std::vector<std::vector<std::string_view>> schedules_;
  bool trains_ = false;
};

}  // namespace joulemap::ingest

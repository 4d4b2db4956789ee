// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/hlo_program.h"

#include <algorithm>
#include <array>

#include "formats/protobuf.h"
#include "scopes/op_names.h"
#include "scopes/tensor_text.h"

namespace joulemap::ingest {
namespace {

using formats::ProtobufReader;

constexpr std::uint32_t kHloProtoModuleField = 1;
constexpr std::uint32_t kModuleComputationsField = 3, kModuleScheduleField = 7;
constexpr std::uint32_t kScheduleSequencesField = 1, kMapValueField = 2, kSequenceIdsField = 1;
constexpr std::uint32_t kComputationInstructionsField = 2, kComputationIdField = 5;
constexpr std::uint32_t kInstructionNameField = 1, kInstructionOpcodeField = 2, kInstructionShapeField = 3,
                        kInstructionMetadataField = 7, kInstructionIdField = 35, kInstructionOperandsField = 36,
                        kInstructionCalleesField = 38;
constexpr std::uint32_t kShapeTypeField = 2, kShapeDimensionsField = 3;
constexpr std::uint32_t kMetadataTypeField = 1, kMetadataNameField = 2;

// Opcodes of instructions that execute nothing themselves.
constexpr std::array<std::string_view, 10> kNotExecutedOpcodes = {
    "parameter", "constant", "bitcast",     "tuple",     "get-tuple-element",
    "while",     "call",     "conditional", "after-all", "async-done"};

// PrimitiveType of xla_data.proto, by number.
constexpr std::array<std::string_view, 21> kXlaTypeNames = {
    "",    "pred", "s8",    "s16",    "s32",       "s64",  "u8",    "uint16",     "uint32", "uint64",  "f16",
    "f32", "f64",  "tuple", "opaque", "complex64", "bf16", "token", "complex128", "f8e5m2", "f8e4m3fn"};

void append_shape_text(std::string_view bytes, scopes::TensorText& text) {
  std::string_view type;
  std::string dimensions;
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (fields.field() == kShapeTypeField) {
      const std::uint64_t number = fields.unsigned_number();
      type = number < kXlaTypeNames.size() ? kXlaTypeNames[number] : std::string_view();
    }
    if (fields.field() != kShapeDimensionsField) continue;
    for (const std::uint64_t size : formats::decode_packed_varints(fields.bytes())) {
      dimensions += (dimensions.empty() ? "" : ",") + std::to_string(size);
    }
  }
  text.add_tensor(type, dimensions);
}

// A name without a path ("reduce_sum") does not identify its origin.
bool has_module_path(std::string_view op_name) { return op_name.find('/') != std::string_view::npos; }

}  // namespace

HloProgram::Instruction HloProgram::read_instruction(std::string_view bytes) {
  Instruction instruction;
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (fields.field() == kInstructionNameField) instruction.name = fields.bytes();
    if (fields.field() == kInstructionIdField) instruction.id = fields.signed_number();
    if (fields.field() == kInstructionOpcodeField) {
      instruction.is_executed = std::find(kNotExecutedOpcodes.begin(), kNotExecutedOpcodes.end(), fields.bytes()) ==
                                kNotExecutedOpcodes.end();
    }
    if (fields.field() == kInstructionShapeField) instruction.shape_proto = fields.bytes();
    if (fields.field() == kInstructionOperandsField)
      instruction.operand_ids = formats::decode_packed_varints(fields.bytes());
    if (fields.field() == kInstructionCalleesField)
      instruction.called_computation_ids = formats::decode_packed_varints(fields.bytes());
    if (fields.field() != kInstructionMetadataField) continue;
    ProtobufReader metadata(fields.bytes());
    while (metadata.next()) {
      if (metadata.field() == kMetadataTypeField) instruction.origin.op_type = metadata.bytes();
      if (metadata.field() == kMetadataNameField) instruction.origin.op_name = metadata.bytes();
    }
  }
  return instruction;
}

void HloProgram::add_computation(std::string_view bytes) {
  std::uint64_t id = 0;
  std::unordered_map<std::string_view, std::size_t> names;
  std::vector<Instruction> instructions;
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (fields.field() == kComputationIdField) id = fields.unsigned_number();
    if (fields.field() != kComputationInstructionsField) continue;
    Instruction& instruction = instructions.emplace_back(read_instruction(fields.bytes()));
    const std::string_view op_name = instruction.origin.op_name;
    if (instruction.is_executed && instruction.id != 0)
      executed_instruction_names_.insert_or_assign(instruction.id, instruction.name);
    computes_gradients_ = computes_gradients_ || scopes::is_gradient_op(op_name);
    if (has_module_path(op_name)) {
      ++names[op_name];
      origin_by_instruction_.insert_or_assign(instruction.name, instruction.origin);
    } else if (!instruction.called_computation_ids.empty()) {
      instructions_without_path_.push_back(instruction);
    } else if (!op_name.empty()) {
      origin_by_instruction_.insert_or_assign(instruction.name, instruction.origin);
    }
  }
  op_name_counts_.insert_or_assign(id, std::move(names));
  add_operand_shapes(instructions);
}

void HloProgram::add_operand_shapes(const std::vector<Instruction>& instructions) {
  std::unordered_map<std::uint64_t, std::string_view> shapes;
  for (const Instruction& instruction : instructions)
    shapes.insert_or_assign(static_cast<std::uint64_t>(instruction.id), instruction.shape_proto);
  for (const Instruction& instruction : instructions) {
    if (!instruction.is_executed || instruction.shape_proto.empty()) continue;
    std::vector<std::string_view>& inputs = operand_shapes_by_instruction_[instruction.name];
    inputs.clear();
    for (const std::uint64_t operand_id : instruction.operand_ids) {
      if (const auto operand_shape = shapes.find(operand_id); operand_shape != shapes.end())
        inputs.push_back(operand_shape->second);
    }
  }
}

std::string HloProgram::format_input_tensors(std::string_view instruction) const {
  const auto operand_shapes = operand_shapes_by_instruction_.find(instruction);
  if (operand_shapes == operand_shapes_by_instruction_.end()) return {};
  scopes::TensorText text;
  for (const std::string_view shape : operand_shapes->second) append_shape_text(shape, text);
  return text.text();
}

// An instruction without a path of its own, such as a fusion, takes the most frequent op_name in the computations that
// it calls.
void HloProgram::inherit_names_from_callees() {
  for (const Instruction& instruction : instructions_without_path_) {
    HloOrigin origin = instruction.origin;
    std::size_t max_name_count = 0;
    for (const std::uint64_t computation : instruction.called_computation_ids) {
      const auto names = op_name_counts_.find(computation);
      if (names == op_name_counts_.end()) continue;
      for (const auto& [name, count] : names->second) {
        if (count < max_name_count || (count == max_name_count && name >= origin.op_name))
          continue;  // independent of the map's order
        max_name_count = count;
        origin.op_name = name;
      }
    }
    if (!origin.op_name.empty()) origin_by_instruction_.insert_or_assign(instruction.name, origin);
  }
  instructions_without_path_.clear();
  op_name_counts_.clear();
}

void HloProgram::add_schedule(std::string_view sequence) {
  std::vector<std::string_view> names;
  ProtobufReader fields(sequence);
  while (fields.next()) {
    if (fields.field() != kSequenceIdsField) continue;
    for (const std::uint64_t id : formats::decode_packed_varints(fields.bytes())) {
      const auto instruction_name = executed_instruction_names_.find(static_cast<std::int64_t>(id));
      if (instruction_name != executed_instruction_names_.end()) names.push_back(instruction_name->second);
    }
  }
  if (!names.empty()) schedules_.push_back(std::move(names));
}

HloProgram HloProgram::read(std::string_view hlo_proto) {
  HloProgram program;
  ProtobufReader fields(hlo_proto);
  while (fields.next()) {
    if (fields.field() != kHloProtoModuleField) continue;
    ProtobufReader module(fields.bytes());
    while (module.next()) {
      if (module.field() == kModuleComputationsField) program.add_computation(module.bytes());
    }
    ProtobufReader schedule_reader(fields.bytes());
    while (schedule_reader.next()) {
      if (schedule_reader.field() != kModuleScheduleField) continue;
      ProtobufReader sequences(schedule_reader.bytes());
      while (sequences.next()) {
        if (sequences.field() != kScheduleSequencesField) continue;
        ProtobufReader entry(sequences.bytes());
        while (entry.next()) {
          if (entry.field() == kMapValueField) program.add_schedule(entry.bytes());
        }
      }
    }
  }
  program.inherit_names_from_callees();
  program.executed_instruction_names_.clear();
  return program;
}

const HloOrigin* HloProgram::find_instruction_origin(std::string_view instruction) const {
  const auto instruction_origin = origin_by_instruction_.find(instruction);
  return instruction_origin == origin_by_instruction_.end() ? nullptr : &instruction_origin->second;
}

}  // namespace joulemap::ingest

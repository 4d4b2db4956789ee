// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstring>

#include "formats/protobuf.h"
#include "predict/graph/onnx/onnx_model.h"

namespace joulemap::predict::onnx {
namespace {

using formats::ProtobufReader;

// The numbers of a tensor while it is parsed, from raw bytes or from the field of its type.
struct ParsedTensorValues {
  std::string_view raw_bytes;
  std::vector<double> stored_values;
  bool is_external = false;
  bool has_too_many_values = false;

  void append_value(double number) {
    if (stored_values.size() < kMaxStoredConstantValues) {
      stored_values.push_back(number);
    } else {
      has_too_many_values = true;
    }
  }
};

template <class T>
void append_fixed_width_values(std::string_view bytes, ParsedTensorValues& data) {
  for (std::size_t offset = 0; offset + sizeof(T) <= bytes.size() && !data.has_too_many_values; offset += sizeof(T)) {
    T number;
    std::memcpy(&number, bytes.data() + offset, sizeof(T));
    data.append_value(static_cast<double>(number));
  }
}

void append_varints(const ProtobufReader& field, ParsedTensorValues& data) {
  if (!field.is_bytes()) return data.append_value(static_cast<double>(field.signed_number()));
  if (field.bytes().size() > kMaxStoredConstantValues * 10) {
    data.has_too_many_values = true;
    return;
  }
  for (const std::uint64_t number : formats::decode_packed_varints(field.bytes())) {
    data.append_value(static_cast<double>(static_cast<std::int64_t>(number)));
  }
}

double fp16_to_double(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1f) return sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

double bf16_to_double(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// Converts 16-bit floats, which both raw bytes and int32_data store as integers of their bits.
void decode_16_bit_values(DataType type, std::vector<double>& numbers) {
  for (double& number : numbers) {
    const auto bits = static_cast<std::uint16_t>(static_cast<std::int64_t>(number) & 0xffff);
    number = type == DataType::float16 ? fp16_to_double(bits) : bf16_to_double(bits);
  }
}

void append_raw_values(DataType type, std::string_view raw_bytes, ParsedTensorValues& data) {
  switch (type) {
    case DataType::float32:
      return append_fixed_width_values<float>(raw_bytes, data);
    case DataType::float64:
      return append_fixed_width_values<double>(raw_bytes, data);
    case DataType::int32:
      return append_fixed_width_values<std::int32_t>(raw_bytes, data);
    case DataType::int64:
      return append_fixed_width_values<std::int64_t>(raw_bytes, data);
    case DataType::uint64:
      return append_fixed_width_values<std::uint64_t>(raw_bytes, data);
    case DataType::boolean:
    case DataType::uint8:
      return append_fixed_width_values<std::uint8_t>(raw_bytes, data);
    case DataType::int8:
      return append_fixed_width_values<std::int8_t>(raw_bytes, data);
    case DataType::int16:
      return append_fixed_width_values<std::int16_t>(raw_bytes, data);
    case DataType::float16:
    case DataType::bfloat16:
      return append_fixed_width_values<std::uint16_t>(raw_bytes, data);
    default:
      data.has_too_many_values = true;
  }
}

void read_tensor_field(const ProtobufReader& field, Tensor& tensor, ParsedTensorValues& data) {
  switch (field.field()) {
    case 1:
      if (!field.is_bytes()) return tensor.sizes.push_back(field.signed_number());
      for (const std::uint64_t size : formats::decode_packed_varints(field.bytes())) {
        tensor.sizes.push_back(static_cast<std::int64_t>(size));
      }
      return;
    case 2:
      tensor.type = static_cast<DataType>(field.unsigned_number() & 0xffff);
      return;
    case 4:
      if (field.is_bytes()) return append_fixed_width_values<float>(field.bytes(), data);
      return data.append_value(field.float_value());
    case 5:
    case 7:
    case 11:
      return append_varints(field, data);
    case 8:
      tensor.name = field.bytes();
      return;
    case 9:
      data.raw_bytes = field.bytes();
      return;
    case 10:
      if (field.is_bytes()) return append_fixed_width_values<double>(field.bytes(), data);
      return data.append_value(field.double_value());
    case 13:
    case 14:
      data.is_external = data.is_external || field.is_bytes() || field.unsigned_number() != 0;
      return;
    default:
      return;
  }
}

Tensor make_tensor(DataType type, Sizes sizes, std::vector<double> numbers) {
  return {.name = {}, .sizes = std::move(sizes), .type = type, .stored_values = std::move(numbers)};
}

}  // namespace

Tensor constant_tensor(const Node& node) {
  for (const Attribute& attribute : node.attributes) {
    const Sizes integers = attribute.integers;
    if (attribute.name == "value" && !attribute.tensor.empty()) return attribute.tensor[0];
    if (attribute.name == "value_int") {
      return make_tensor(DataType::int64, {}, {static_cast<double>(attribute.integer.value_or(0))});
    }
    if (attribute.name == "value_float") return make_tensor(DataType::float32, {}, {attribute.real.value_or(0)});
    if (attribute.name == "value_ints" && integers.size() <= kMaxStoredConstantValues) {
      return make_tensor(DataType::int64, {static_cast<std::int64_t>(integers.size())},
                         {integers.begin(), integers.end()});
    }
    if (attribute.name == "value_floats" && attribute.reals.size() <= kMaxStoredConstantValues) {
      return make_tensor(DataType::float32, {static_cast<std::int64_t>(attribute.reals.size())}, attribute.reals);
    }
  }
  return {};
}

Tensor read_tensor(std::string_view bytes) {
  Tensor tensor;
  ParsedTensorValues data;
  ProtobufReader message(bytes);
  while (message.next()) read_tensor_field(message, tensor, data);
  std::size_t expected = 1;
  for (const std::int64_t size : tensor.sizes) {
    const bool fits = size >= 0 && size <= static_cast<std::int64_t>(kMaxStoredConstantValues);
    expected = fits && expected <= kMaxStoredConstantValues ? expected * static_cast<std::size_t>(size)
                                                            : kMaxStoredConstantValues + 1;
  }
  if (expected > kMaxStoredConstantValues || data.is_external) return tensor;
  if (!data.raw_bytes.empty()) append_raw_values(tensor.type, data.raw_bytes, data);
  if (data.has_too_many_values || data.stored_values.size() != expected) return tensor;
  if (tensor.type == DataType::float16 || tensor.type == DataType::bfloat16)
    decode_16_bit_values(tensor.type, data.stored_values);
  tensor.stored_values = std::move(data.stored_values);
  return tensor;
}

}  // namespace joulemap::predict::onnx

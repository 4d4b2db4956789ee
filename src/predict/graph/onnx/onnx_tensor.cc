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
struct Data {
  std::string_view raw;
  std::vector<double> numbers;
  bool elsewhere = false;
  bool too_many = false;

  void add(double number) {
    if (numbers.size() < kMaxStoredNumbers) {
      numbers.push_back(number);
    } else {
      too_many = true;
    }
  }
};

template <class T>
void add_fixed(std::string_view bytes, Data& data) {
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size() && !data.too_many; at += sizeof(T)) {
    T number;
    std::memcpy(&number, bytes.data() + at, sizeof(T));
    data.add(static_cast<double>(number));
  }
}

void add_varints(const ProtobufReader& field, Data& data) {
  if (!field.is_bytes()) return data.add(static_cast<double>(field.signed_number()));
  if (field.bytes().size() > kMaxStoredNumbers * 10) {
    data.too_many = true;
    return;
  }
  for (const std::uint64_t number : formats::packed_numbers(field.bytes())) {
    data.add(static_cast<double>(static_cast<std::int64_t>(number)));
  }
}

double from_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1f) return sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

double from_brain_half(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// Converts 16-bit floats, which both raw bytes and int32_data store as integers of their bits.
void bits_to_halves(DataType type, std::vector<double>& numbers) {
  for (double& number : numbers) {
    const auto bits = static_cast<std::uint16_t>(static_cast<std::int64_t>(number) & 0xffff);
    number = type == DataType::float16 ? from_half(bits) : from_brain_half(bits);
  }
}

void add_raw(DataType type, std::string_view raw, Data& data) {
  switch (type) {
    case DataType::float32:
      return add_fixed<float>(raw, data);
    case DataType::float64:
      return add_fixed<double>(raw, data);
    case DataType::int32:
      return add_fixed<std::int32_t>(raw, data);
    case DataType::int64:
      return add_fixed<std::int64_t>(raw, data);
    case DataType::uint64:
      return add_fixed<std::uint64_t>(raw, data);
    case DataType::boolean:
    case DataType::uint8:
      return add_fixed<std::uint8_t>(raw, data);
    case DataType::int8:
      return add_fixed<std::int8_t>(raw, data);
    case DataType::int16:
      return add_fixed<std::int16_t>(raw, data);
    case DataType::float16:
    case DataType::bfloat16:
      return add_fixed<std::uint16_t>(raw, data);
    default:
      data.too_many = true;
  }
}

void read_field(const ProtobufReader& field, Tensor& tensor, Data& data) {
  switch (field.field()) {
    case 1:
      if (!field.is_bytes()) return tensor.sizes.push_back(field.signed_number());
      for (const std::uint64_t size : formats::packed_numbers(field.bytes())) {
        tensor.sizes.push_back(static_cast<std::int64_t>(size));
      }
      return;
    case 2:
      tensor.type = static_cast<DataType>(field.unsigned_number() & 0xffff);
      return;
    case 4:
      if (field.is_bytes()) return add_fixed<float>(field.bytes(), data);
      return data.add(field.float_value());
    case 5:
    case 7:
    case 11:
      return add_varints(field, data);
    case 8:
      tensor.name = field.bytes();
      return;
    case 9:
      data.raw = field.bytes();
      return;
    case 10:
      if (field.is_bytes()) return add_fixed<double>(field.bytes(), data);
      return data.add(field.double_value());
    case 13:
    case 14:
      data.elsewhere = data.elsewhere || field.is_bytes() || field.unsigned_number() != 0;
      return;
    default:
      return;
  }
}

Tensor of_numbers(DataType type, Sizes sizes, std::vector<double> numbers) {
  return {.name = {}, .sizes = std::move(sizes), .type = type, .numbers = std::move(numbers)};
}

}  // namespace

Tensor constant_tensor(const Node& node) {
  for (const Attribute& attribute : node.attributes) {
    const Sizes integers = attribute.integers;
    if (attribute.name == "value" && !attribute.tensor.empty()) return attribute.tensor[0];
    if (attribute.name == "value_int") {
      return of_numbers(DataType::int64, {}, {static_cast<double>(attribute.integer.value_or(0))});
    }
    if (attribute.name == "value_float") return of_numbers(DataType::float32, {}, {attribute.real.value_or(0)});
    if (attribute.name == "value_ints" && integers.size() <= kMaxStoredNumbers) {
      return of_numbers(DataType::int64, {static_cast<std::int64_t>(integers.size())},
                        {integers.begin(), integers.end()});
    }
    if (attribute.name == "value_floats" && attribute.reals.size() <= kMaxStoredNumbers) {
      return of_numbers(DataType::float32, {static_cast<std::int64_t>(attribute.reals.size())}, attribute.reals);
    }
  }
  return {};
}

Tensor read_tensor(std::string_view bytes) {
  Tensor tensor;
  Data data;
  ProtobufReader message(bytes);
  while (message.next()) read_field(message, tensor, data);
  std::size_t expected = 1;
  for (const std::int64_t size : tensor.sizes) {
    const bool fits = size >= 0 && size <= static_cast<std::int64_t>(kMaxStoredNumbers);
    expected =
        fits && expected <= kMaxStoredNumbers ? expected * static_cast<std::size_t>(size) : kMaxStoredNumbers + 1;
  }
  if (expected > kMaxStoredNumbers || data.elsewhere) return tensor;
  if (!data.raw.empty()) add_raw(tensor.type, data.raw, data);
  if (data.too_many || data.numbers.size() != expected) return tensor;
  if (tensor.type == DataType::float16 || tensor.type == DataType::bfloat16) bits_to_halves(tensor.type, data.numbers);
  tensor.numbers = std::move(data.numbers);
  return tensor;
}

}  // namespace joulemap::predict::onnx

// SPDX-License-Identifier: Apache-2.0
#include "scopes/tensor_text.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace joulemap::scopes {
namespace {

constexpr std::size_t kMaxShapeLength = 256;  // characters; longer than the shape of any tensor
constexpr std::string_view kTensorListType = "TensorList";

constexpr std::pair<std::string_view, std::string_view> kTensorTypeNames[] = {
    {"float", ""},
    {"float32", ""},
    {"f32", ""},
    {"double", "float64"},
    {"f64", "float64"},
    {"c10::Half", "float16"},
    {"f16", "float16"},
    {"half", "float16"},
    {"c10::BFloat16", "bfloat16"},
    {"bf16", "bfloat16"},
    {"long int", "int64"},
    {"long", "int64"},
    {"s64", "int64"},
    {"int", "int32"},
    {"s32", "int32"},
    {"short int", "int16"},
    {"short", "int16"},
    {"s16", "int16"},
    {"signed char", "int8"},
    {"s8", "int8"},
    {"unsigned char", "uint8"},
    {"u8", "uint8"},
    {"bool", "bool"},
    {"pred", "bool"},
    {"c10::complex<float>", "complex64"},
    {"c10::complex<double>", "complex128"},
};

// Type names of PyTorch's profiler for values that are not tensors.
constexpr std::string_view kNonTensorTypeNames[] = {"", "Scalar", "ScalarList", "GenericList", "None"};

std::string_view short_type_name(std::string_view name) {
  for (const auto& [long_name, type] : kTensorTypeNames) {
    if (long_name == name) return type;
  }
  if (name.starts_with("c10::")) name.remove_prefix(5);
  return name;
}

bool is_tensor_type(std::string_view type) {
  return std::find(std::begin(kNonTensorTypeNames), std::end(kNonTensorTypeNames), type) ==
         std::end(kNonTensorTypeNames);
}

std::vector<std::string_view> find_quoted_words(std::string_view list_text) {
  std::vector<std::string_view> words;
  for (std::size_t quote_position = list_text.find('"'); quote_position != std::string_view::npos;
       quote_position = list_text.find('"', quote_position)) {
    const std::size_t end = list_text.find('"', quote_position + 1);
    if (end == std::string_view::npos) break;
    words.push_back(list_text.substr(quote_position + 1, end - quote_position - 1));
    quote_position = end + 1;
  }
  return words;
}

// Calls visit(index, shape) for each innermost bracket, which is a shape. `index` is the index of the argument, a
// bracket of the second level; the shapes of a list of tensors share it.
template <class Visit>
void for_each_shape(std::string_view list_text, const Visit& visit) {
  std::size_t depth = 0;
  std::size_t index = 0;
  std::size_t begin = std::string_view::npos;
  for (std::size_t position = 0; position < list_text.size(); ++position) {
    if (list_text[position] == '[') {
      ++depth;
      begin = position + 1;
    }
    if (list_text[position] != ']' || depth == 0) continue;
    if (depth > 1 && begin != std::string_view::npos) visit(index, list_text.substr(begin, position - begin));
    if (depth == 2) ++index;
    begin = std::string_view::npos;
    --depth;
  }
}

}  // namespace

void TensorText::add_tensor(std::string_view type, std::string_view shape) {
  if (++tensor_count_ > kMaxTensors) return;
  if (tensor_count_ > 1) text_ += ' ';
  text_.append(short_type_name(type)) += '[';
  for (const char c : shape.substr(0, kMaxShapeLength)) {
    if ((c >= '0' && c <= '9') || c == ',' || c == '-') text_ += c;
  }
  text_ += ']';
}

std::string TensorText::text() const {
  if (tensor_count_ == 0) return "()";
  return tensor_count_ > kMaxTensors ? text_ + " and " + std::to_string(tensor_count_ - kMaxTensors) + " more" : text_;
}

std::string parse_kineto_tensors(std::string_view shapes, std::string_view types) {
  if (!shapes.starts_with('[')) return {};
  const std::vector<std::string_view> names = find_quoted_words(types);
  TensorText text;
  for_each_shape(shapes, [&](std::size_t index, std::string_view shape) {
    const std::string_view type = index < names.size() ? names[index] : std::string_view();
    // Without a type, only a shape with numbers certainly belongs to a tensor.
    if (names.empty() ? shape.empty() : !is_tensor_type(type)) return;
    const bool is_list = type == kTensorListType;
    if (is_list && shape.empty()) return;  // the profiler omits the shapes of long lists
    text.add_tensor(is_list ? std::string_view() : type, shape);
  });
  return text.text();
}

std::string parse_onnxruntime_tensors(std::string_view types_and_shapes) {
  if (!types_and_shapes.starts_with('[')) return {};
  const std::vector<std::string_view> names = find_quoted_words(types_and_shapes);
  TensorText text;
  for_each_shape(types_and_shapes, [&](std::size_t index, std::string_view shape) {
    if (index < names.size()) text.add_tensor(names[index], shape);
  });
  return text.text();
}

std::string parse_tensorflow_tensors(std::string_view types_and_shapes) {
  if (!types_and_shapes.starts_with('(') || !types_and_shapes.ends_with(')')) return {};
  types_and_shapes = types_and_shapes.substr(1, types_and_shapes.size() - 2);
  TensorText text;
  while (!types_and_shapes.empty()) {
    const std::size_t end = std::min(types_and_shapes.find(';'), types_and_shapes.size());
    const std::string_view tensor = types_and_shapes.substr(0, end);
    types_and_shapes.remove_prefix(std::min(end + 1, types_and_shapes.size()));
    const std::size_t bracket = tensor.find('[');
    if (bracket == std::string_view::npos) continue;
    const std::string_view shape = tensor.substr(bracket + 1);
    text.add_tensor(tensor.substr(0, bracket), shape.substr(0, shape.find(']')));
  }
  return text.text();
}

std::string append_tensors_to_node(std::string_view node, std::string_view tensors) {
  std::string text(node);
  if (!text.empty() && !tensors.empty()) text += ' ';
  return text.append(tensors);
}

bool has_tensor_text(std::string_view text) {
  return text.ends_with(']') || text.ends_with("()") || text.ends_with(" more");
}

}  // namespace joulemap::scopes

// SPDX-License-Identifier: Apache-2.0
#include "ingest/nsys/nvtx_names.h"

#include <algorithm>
#include <charconv>

namespace joulemap::ingest {
namespace {

constexpr std::string_view kSequenceNumberMarker = ", seq = ";
constexpr std::string_view kAutogradEvaluationPrefix = "autograd::engine::evaluate_function: ";

// Whether the name is that of an autograd node, such as "ConvolutionBackward0".
bool is_autograd_node(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789");
  return digits != std::string_view::npos && name.substr(0, digits + 1).ends_with("Backward");
}

// The value after `key` ("name=") up to the next known field, because a JAX path may contain commas; empty if missing.
std::string_view find_xla_field_value(std::string_view fields, std::string_view key) {
  const std::size_t key_position = fields.find(key);
  if (key_position == std::string_view::npos || (key_position > 0 && fields[key_position - 1] != ',')) return {};
  const std::string_view value = fields.substr(key_position + key.size());
  std::size_t end = value.size();
  for (const std::string_view next_field_key : {",hlo_op=", ",hlo_module=", ",program_id=", ",name="}) {
    end = std::min(end, value.find(next_field_key));
  }
  return value.substr(0, end);
}

}  // namespace

std::optional<TorchRange> parse_torch_range(std::string_view text) {
  std::size_t end = text.size();
  for (const std::string_view suffix : {kSequenceNumberMarker, std::string_view(", op_id = "),
                                        std::string_view(", sizes = "), std::string_view(", input_op_ids = ")}) {
    end = std::min(end, text.find(suffix));
  }
  TorchRange range{.name = text.substr(0, end)};
  if (end == text.size() && !text.starts_with("aten::") && !text.starts_with(kAutogradEvaluationPrefix))
    return std::nullopt;
  range.is_backward = text.starts_with(kAutogradEvaluationPrefix) || is_autograd_node(range.name);
  if (const std::size_t marker_position = text.find(kSequenceNumberMarker); marker_position != std::string_view::npos) {
    std::uint32_t number = 0;
    const std::string_view digits = text.substr(marker_position + kSequenceNumberMarker.size());
    const auto [digits_end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && number < UINT32_MAX) range.sequence_number = number;
  }
  return range;
}

std::optional<XlaRange> parse_xla_range(std::string_view text) {
  const std::size_t begin = text.find('#');
  const std::size_t end = text.rfind('#');
  if (begin == std::string_view::npos || end <= begin) return std::nullopt;
  const std::string_view fields = text.substr(begin + 1, end - begin - 1);
  const XlaRange range{.op_name = find_xla_field_value(fields, "name="),
                       .instruction = find_xla_field_value(fields, "hlo_op=")};
  return range.instruction.empty() ? std::nullopt : std::optional(range);
}

}  // namespace joulemap::ingest

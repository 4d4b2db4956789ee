// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace joulemap::predict {
namespace {

constexpr std::array<std::string_view, kOperationKindCount> kKindNames = {
    "dense",     "bmm",     "attention", "convolution", "pooling",   "padding",     "normalization", "activation",
    "rescaling", "reshape", "dropout",   "add",         "multiply",  "concatenate", "embedding",     "loss",
    "resize",    "cast",    "reduce",    "input",       "optimizer", "view",        "unknown",       "recurrent"};
constexpr std::array<std::string_view, 4> kDtypeNames = {"fp32", "tf32", "fp16", "bf16"};
constexpr std::array<std::string_view, 4> kPassNames = {"forward", "backward", "backward-weights", "optimizer"};

template <class Enum, std::size_t N>
std::optional<Enum> find_enumerator(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto* matching_name = std::find(names.begin(), names.end(), name);
  if (matching_name == names.end()) return std::nullopt;
  return static_cast<Enum>(matching_name - names.begin());
}

}  // namespace

std::string_view name_of(Kind kind) { return kKindNames.at(static_cast<std::size_t>(kind)); }
std::string_view name_of(Dtype dtype) { return kDtypeNames.at(static_cast<std::size_t>(dtype)); }
std::string_view name_of(Pass pass) { return kPassNames.at(static_cast<std::size_t>(pass)); }
std::optional<Kind> kind_from_name(std::string_view name) { return find_enumerator<Kind>(kKindNames, name); }
std::optional<Dtype> dtype_from_name(std::string_view name) { return find_enumerator<Dtype>(kDtypeNames, name); }
std::optional<Pass> pass_from_name(std::string_view name) { return find_enumerator<Pass>(kPassNames, name); }

OperationParameters::OperationParameters(
    std::initializer_list<std::pair<std::string_view, std::int64_t>> named_values) {
  for (const auto& [name, value] : named_values) entries_.emplace_back(std::string(name), value);
}

void OperationParameters::set(std::string_view name, std::int64_t value) {
  for (auto& [existing_name, existing_value] : entries_) {
    if (existing_name == name) {
      existing_value = value;
      return;
    }
  }
  entries_.emplace_back(std::string(name), value);
}

std::optional<std::int64_t> OperationParameters::find(std::string_view name) const {
  for (const auto& [existing_name, value] : entries_) {
    if (existing_name == name) return value;
  }
  return std::nullopt;
}

Result<FormAndParameters> parse_parameters(std::string_view text) {
  FormAndParameters form_and_parameters;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    const std::size_t equals_position = pair.find('=');
    if (equals_position == std::string_view::npos) {
      return Error{ErrorCode::malformed, fmt::format("\"{}\" is not name=value", pair), ""};
    }
    const std::string_view name = pair.substr(0, equals_position);
    const std::string_view value = pair.substr(equals_position + 1);
    std::int64_t number = 0;
    const auto [end, parse_error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (parse_error == std::errc() && end == value.data() + value.size()) {
      form_and_parameters.parameters.set(name, number);
    } else if (name == "form" || name == "to") {
      form_and_parameters.form = value;
    } else if (name == "over") {
      form_and_parameters.parameters.set(name, value == "last" ? 0 : value == "rows" ? 1 : 2);
    }  // ignores other texts, such as a fractional rate, which are not sizes
  }
  return form_and_parameters;
}

bool has_lower_bound(const Operation& operation) {
  const OperationParameters& p = operation.parameters;
  return operation.kind != Kind::unknown || (p.find("in") && p.find("out")) || p.find("width");
}

ConvolutionGrouping classify_convolution_grouping(const Operation& operation) {
  const OperationParameters& p = operation.parameters;
  const std::int64_t groups = p.get("groups", 1);
  if (operation.kind != Kind::convolution || groups <= 1) return ConvolutionGrouping::none;
  return groups == p.get("channels", 0) && groups == p.get("out", 0) ? ConvolutionGrouping::depthwise
                                                                     : ConvolutionGrouping::groups;
}

std::string parameters_text(const Operation& operation) {
  std::string text = operation.form.empty() ? "" : "form=" + operation.form;
  for (const auto& [name, value] : operation.parameters.entries()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ";", name, value);
  }
  return text;
}

}  // namespace joulemap::predict

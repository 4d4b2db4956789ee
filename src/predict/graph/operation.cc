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
  const auto* at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<Enum>(at - names.begin());
}

}  // namespace

std::string_view name_of(Kind kind) { return kKindNames.at(static_cast<std::size_t>(kind)); }
std::string_view name_of(Dtype dtype) { return kDtypeNames.at(static_cast<std::size_t>(dtype)); }
std::string_view name_of(Pass pass) { return kPassNames.at(static_cast<std::size_t>(pass)); }
std::optional<Kind> kind_from_name(std::string_view name) { return find_enumerator<Kind>(kKindNames, name); }
std::optional<Dtype> dtype_from_name(std::string_view name) { return find_enumerator<Dtype>(kDtypeNames, name); }
std::optional<Pass> pass_from_name(std::string_view name) { return find_enumerator<Pass>(kPassNames, name); }

OperationParameters::OperationParameters(std::initializer_list<std::pair<std::string_view, std::int64_t>> named) {
  for (const auto& [name, value] : named) entries_.emplace_back(std::string(name), value);
}

void OperationParameters::set(std::string_view name, std::int64_t value) {
  for (auto& [known, old] : entries_) {
    if (known == name) {
      old = value;
      return;
    }
  }
  entries_.emplace_back(std::string(name), value);
}

std::optional<std::int64_t> OperationParameters::find(std::string_view name) const {
  for (const auto& [known, value] : entries_) {
    if (known == name) return value;
  }
  return std::nullopt;
}

Result<FormAndParameters> parse_parameters(std::string_view text) {
  FormAndParameters parsed;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) {
      return Error{ErrorCode::malformed, fmt::format("\"{}\" is not name=value", pair), ""};
    }
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value = pair.substr(equals + 1);
    std::int64_t number = 0;
    const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (failed == std::errc() && end == value.data() + value.size()) {
      parsed.parameters.set(name, number);
    } else if (name == "form" || name == "to") {
      parsed.form = value;
    } else if (name == "over") {
      parsed.parameters.set(name, value == "last" ? 0 : value == "rows" ? 1 : 2);
    }  // ignores other texts, such as a fractional rate, which are not sizes
  }
  return parsed;
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

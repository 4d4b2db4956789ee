// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/input_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "predict/graph/onnx/program.h"

namespace joulemap::predict::onnx {
namespace {

std::string dimension_text(const Dimension& dimension) {
  if (dimension.size) return std::to_string(*dimension.size);
  return dimension.size_symbol.empty() ? "?" : to_valid_utf8(dimension.size_symbol);
}

std::string dimensions_text(const std::vector<Dimension>& dimensions) {
  std::string text;
  for (const Dimension& dimension : dimensions) text += (text.empty() ? "" : "x") + dimension_text(dimension);
  return text;
}

std::string input_sizes_remedy(const ValueInfo& input, const std::vector<Dimension>& dimensions) {
  std::string example;
  for (const Dimension& dimension : dimensions) {
    const std::int64_t typical_size = example.empty() ? 1 : dimensions.size() == 4 ? 224 : 128;
    example += (example.empty() ? "" : "x") + std::to_string(dimension.size.value_or(typical_size));
  }
  return fmt::format("set its sizes: --input {}={}", to_valid_utf8(input.name), example);
}

Error usage_error(std::string message, std::string remedy = "") {
  return {ErrorCode::usage, std::move(message), std::move(remedy)};
}

const InputShape* find_requested_shape(const GraphOptions& options, std::string_view name, std::size_t position) {
  std::size_t unnamed_input_count = 0;
  for (const InputShape& input : options.inputs) {
    if (input.name == name && !name.empty()) return &input;
    if (input.name.empty() && unnamed_input_count++ == position) return &input;
  }
  return nullptr;
}

Status check_requested_inputs(const GraphOptions& options, const std::vector<const ValueInfo*>& inputs) {
  if (options.batch && *options.batch < 1) {
    return usage_error(fmt::format("a batch of {} is invalid", *options.batch), "use a batch of at least 1: --batch 1");
  }
  std::string names;
  std::size_t unnamed_input_count = 0;
  for (const ValueInfo* const input : inputs) names += (names.empty() ? "" : ", ") + to_valid_utf8(input->name);
  for (const InputShape& requested_input : options.inputs) {
    unnamed_input_count += requested_input.name.empty() ? 1 : 0;
    const bool is_known_input =
        requested_input.name.empty() || std::any_of(inputs.begin(), inputs.end(), [&](const ValueInfo* input) {
          return input->name == requested_input.name;
        });
    if (!is_known_input)
      return usage_error(fmt::format("the network has no input {}", quoted(requested_input.name)),
                         "its inputs are " + names);
    for (const std::int64_t size : requested_input.sizes) {
      if (size < 1)
        return usage_error(fmt::format("an input of {} is invalid", sizes_text(requested_input.sizes)),
                           "sizes must be at least 1");
    }
  }
  if (unnamed_input_count > inputs.size())
    return usage_error("--input sets more inputs than the network has", "its inputs are " + names);
  return Done{};
}

// Binds the symbols of an input's dimensions to the sizes that were requested for it.
Status bind_symbols_of_input(const ValueInfo& input, const InputShape& requested_shape, InputSizes& resolved_inputs) {
  if (!input.dimensions) return Done{};
  if (input.dimensions->size() != requested_shape.sizes.size()) {
    return usage_error(
        fmt::format("the input {} has {} dimensions, {}; --input has {}", quoted(input.name), input.dimensions->size(),
                    dimensions_text(*input.dimensions), sizes_text(requested_shape.sizes)),
        input_sizes_remedy(input, *input.dimensions));
  }
  for (std::size_t i = 0; i < requested_shape.sizes.size(); ++i) {
    const Dimension& dimension = (*input.dimensions)[i];
    if (!dimension.size && !dimension.size_symbol.empty())
      resolved_inputs.size_by_symbol.emplace(dimension.size_symbol, requested_shape.sizes[i]);
  }
  return Done{};
}

// Sizes of an input from the file, with symbols bound. An unknown leading dimension becomes a batch of 1, and
// `open_input_name` the name of the first such input.
Result<Sizes> read_input_sizes_from_file(const ValueInfo& input, InputSizes& resolved_inputs,
                                         std::string& open_input_name) {
  if (!input.dimensions) {
    return usage_error(fmt::format("the sizes of the input {} are not in the file", quoted(input.name)),
                       fmt::format("set them: --input {}=1x3x224x224", to_valid_utf8(input.name)));
  }
  Sizes sizes;
  for (std::size_t i = 0; i < input.dimensions->size(); ++i) {
    const Dimension& dimension = (*input.dimensions)[i];
    const auto bound = resolved_inputs.size_by_symbol.find(dimension.size_symbol);
    const bool is_bound_symbol =
        !dimension.size && !dimension.size_symbol.empty() && bound != resolved_inputs.size_by_symbol.end();
    const bool is_free_dimension = dimension.size ? *dimension.size < 1 : !is_bound_symbol;
    if (!is_free_dimension) {
      sizes.push_back(dimension.size ? *dimension.size : bound->second);
    } else if (i == 0) {
      sizes.push_back(1);
      if (!dimension.size_symbol.empty()) resolved_inputs.size_by_symbol.emplace(dimension.size_symbol, 1);
      if (open_input_name.empty()) open_input_name = input.name;
    } else {
      return usage_error(fmt::format("the input {} is {}: {} has no value", quoted(input.name),
                                     dimensions_text(*input.dimensions), dimension_text(dimension)),
                         input_sizes_remedy(input, *input.dimensions));
    }
  }
  return sizes;
}

Status check_element_count(const ValueInfo& input, const Sizes& sizes) {
  if (are_sizes_possible(sizes)) return Done{};
  return usage_error(fmt::format("the input {} of {} is larger than any memory", quoted(input.name), sizes_text(sizes)),
                     "use a smaller batch or smaller sizes");
}

bool has_fixed_sizes(const ValueInfo& input) {
  return input.dimensions &&
         std::all_of(input.dimensions->begin(), input.dimensions->end(),
                     [](const Dimension& dimension) { return dimension.size && *dimension.size > 0; });
}

const Dimension* leading_dimension(const ValueInfo& input) {
  return input.dimensions && !input.dimensions->empty() ? &input.dimensions->front() : nullptr;
}

void add_unique_note(std::string note, std::vector<std::string>& notes) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
}

// Sets the batch of all inputs. Inputs that do not begin with the batch of the first one, such as a table of biases,
// stay unchanged.
void set_input_batch(std::int64_t batch, InputSizes& resolved_inputs) {
  std::int64_t batch_in_file = 0;
  for (std::size_t i = 0; i < resolved_inputs.resolved_sizes.size(); ++i) {
    const Dimension* const dimension = leading_dimension(*resolved_inputs.input_infos[i]);
    if (resolved_inputs.resolved_sizes[i].empty()) continue;
    const std::int64_t input_batch_in_file = dimension != nullptr ? dimension->size.value_or(0) : 0;
    if (batch_in_file == 0) batch_in_file = input_batch_in_file;
    if (input_batch_in_file > 0 && input_batch_in_file != batch_in_file) {
      add_unique_note(
          fmt::format("the input {} keeps its {}: its first dimension is not the batch",
                      quoted(resolved_inputs.input_infos[i]->name), sizes_text(resolved_inputs.resolved_sizes[i])),
          resolved_inputs.notes);
      continue;
    }
    if (input_batch_in_file > 0 && input_batch_in_file != batch)
      add_unique_note(fmt::format("batch {} instead of the file's {}", batch, input_batch_in_file),
                      resolved_inputs.notes);
    resolved_inputs.resolved_sizes[i][0] = batch;
  }
}

std::vector<const ValueInfo*> list_graph_inputs(const GraphBody& graph) {
  std::unordered_set<std::string_view> weights;
  for (const Tensor& weight : graph.initializers) weights.insert(weight.name);
  std::vector<const ValueInfo*> inputs;
  for (const ValueInfo& input : graph.inputs) {
    if (!weights.contains(input.name)) inputs.push_back(&input);
  }
  return inputs;
}

Status bind_dimension_symbols(const GraphOptions& options, InputSizes& resolved_inputs) {
  for (std::size_t i = 0; i < resolved_inputs.input_infos.size(); ++i) {
    const InputShape* const requested_shape = find_requested_shape(options, resolved_inputs.input_infos[i]->name, i);
    if (requested_shape == nullptr) continue;
    if (Status status = bind_symbols_of_input(*resolved_inputs.input_infos[i], *requested_shape, resolved_inputs);
        !status)
      return status;
  }
  for (const ValueInfo* const input : resolved_inputs.input_infos) {
    const Dimension* const dimension = leading_dimension(*input);
    if (options.batch && dimension != nullptr && !dimension->size && !dimension->size_symbol.empty()) {
      resolved_inputs.size_by_symbol[dimension->size_symbol] = *options.batch;
    }
  }
  return Done{};
}

// The file's sizes of all inputs; empty if one of them is not fixed.
std::vector<Sizes> find_fixed_sizes(const std::vector<const ValueInfo*>& inputs) {
  std::vector<Sizes> fixed_input_sizes;
  for (const ValueInfo* const input : inputs) {
    if (!has_fixed_sizes(*input)) return {};
    Sizes sizes;
    for (const Dimension& dimension : *input->dimensions) sizes.push_back(*dimension.size);
    fixed_input_sizes.push_back(std::move(sizes));
  }
  return fixed_input_sizes;
}

}  // namespace

Result<InputSizes> input_sizes(const GraphBody& graph, const GraphOptions& options) {
  InputSizes resolved_inputs;
  resolved_inputs.input_infos = list_graph_inputs(graph);
  if (Status status = check_requested_inputs(options, resolved_inputs.input_infos); !status) return status.error();
  if (Status status = bind_dimension_symbols(options, resolved_inputs); !status) return status.error();
  std::string open_input_name;
  for (std::size_t i = 0; i < resolved_inputs.input_infos.size(); ++i) {
    const InputShape* const requested_shape = find_requested_shape(options, resolved_inputs.input_infos[i]->name, i);
    Result<Sizes> sizes = requested_shape != nullptr ? Result<Sizes>(requested_shape->sizes)
                                                     : read_input_sizes_from_file(*resolved_inputs.input_infos[i],
                                                                                  resolved_inputs, open_input_name);
    if (!sizes) return sizes.error();
    resolved_inputs.resolved_sizes.push_back(*std::move(sizes));
  }
  if (options.batch) {
    set_input_batch(*options.batch, resolved_inputs);
  } else if (!open_input_name.empty()) {
    resolved_inputs.notes.push_back(fmt::format("batch 1: the file does not fix that of {}", quoted(open_input_name)));
  }
  for (std::size_t i = 0; i < resolved_inputs.input_infos.size(); ++i) {
    if (Status status = check_element_count(*resolved_inputs.input_infos[i], resolved_inputs.resolved_sizes[i]);
        !status)
      return status.error();
  }
  resolved_inputs.sizes_in_file = find_fixed_sizes(resolved_inputs.input_infos);
  if (resolved_inputs.sizes_in_file == resolved_inputs.resolved_sizes) resolved_inputs.sizes_in_file.clear();
  return resolved_inputs;
}

}  // namespace joulemap::predict::onnx

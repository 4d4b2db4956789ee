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
    const std::int64_t usual = example.empty() ? 1 : dimensions.size() == 4 ? 224 : 128;
    example += (example.empty() ? "" : "x") + std::to_string(dimension.size.value_or(usual));
  }
  return fmt::format("set its sizes: --input {}={}", to_valid_utf8(input.name), example);
}

Error usage_error(std::string message, std::string remedy = "") {
  return {ErrorCode::usage, std::move(message), std::move(remedy)};
}

const InputShape* find_requested_shape(const GraphOptions& options, std::string_view name, std::size_t position) {
  std::size_t unnamed = 0;
  for (const InputShape& input : options.inputs) {
    if (input.name == name && !name.empty()) return &input;
    if (input.name.empty() && unnamed++ == position) return &input;
  }
  return nullptr;
}

Status check_requested_inputs(const GraphOptions& options, const std::vector<const ValueInfo*>& inputs) {
  if (options.batch && *options.batch < 1) {
    return usage_error(fmt::format("a batch of {} is invalid", *options.batch), "use a batch of at least 1: --batch 1");
  }
  std::string names;
  std::size_t unnamed = 0;
  for (const ValueInfo* const input : inputs) names += (names.empty() ? "" : ", ") + to_valid_utf8(input->name);
  for (const InputShape& asked : options.inputs) {
    unnamed += asked.name.empty() ? 1 : 0;
    const bool known = asked.name.empty() || std::any_of(inputs.begin(), inputs.end(), [&](const ValueInfo* input) {
                         return input->name == asked.name;
                       });
    if (!known)
      return usage_error(fmt::format("the network has no input {}", quoted(asked.name)), "its inputs are " + names);
    for (const std::int64_t size : asked.sizes) {
      if (size < 1)
        return usage_error(fmt::format("an input of {} is invalid", sizes_text(asked.sizes)),
                           "sizes must be at least 1");
    }
  }
  if (unnamed > inputs.size())
    return usage_error("--input sets more inputs than the network has", "its inputs are " + names);
  return Done{};
}

// Binds the symbols of an input's dimensions to the sizes that were requested for it.
Status bind_symbols_of_input(const ValueInfo& input, const InputShape& asked, InputSizes& known) {
  if (!input.dimensions) return Done{};
  if (input.dimensions->size() != asked.sizes.size()) {
    return usage_error(
        fmt::format("the input {} has {} dimensions, {}; --input has {}", quoted(input.name), input.dimensions->size(),
                    dimensions_text(*input.dimensions), sizes_text(asked.sizes)),
        input_sizes_remedy(input, *input.dimensions));
  }
  for (std::size_t i = 0; i < asked.sizes.size(); ++i) {
    const Dimension& dimension = (*input.dimensions)[i];
    if (!dimension.size && !dimension.size_symbol.empty())
      known.size_by_symbol.emplace(dimension.size_symbol, asked.sizes[i]);
  }
  return Done{};
}

// Sizes of an input from the file, with symbols bound. An unknown leading dimension becomes a batch of 1, and `open`
// the name of the first such input.
Result<Sizes> read_input_sizes_from_file(const ValueInfo& input, InputSizes& known, std::string& open) {
  if (!input.dimensions) {
    return usage_error(fmt::format("the sizes of the input {} are not in the file", quoted(input.name)),
                       fmt::format("set them: --input {}=1x3x224x224", to_valid_utf8(input.name)));
  }
  Sizes sizes;
  for (std::size_t i = 0; i < input.dimensions->size(); ++i) {
    const Dimension& dimension = (*input.dimensions)[i];
    const auto bound = known.size_by_symbol.find(dimension.size_symbol);
    const bool is_bound_symbol =
        !dimension.size && !dimension.size_symbol.empty() && bound != known.size_by_symbol.end();
    const bool is_free_dimension = dimension.size ? *dimension.size < 1 : !is_bound_symbol;
    if (!is_free_dimension) {
      sizes.push_back(dimension.size ? *dimension.size : bound->second);
    } else if (i == 0) {
      sizes.push_back(1);
      if (!dimension.size_symbol.empty()) known.size_by_symbol.emplace(dimension.size_symbol, 1);
      if (open.empty()) open = input.name;
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
void set_input_batch(std::int64_t batch, InputSizes& known) {
  std::int64_t batch_in_file = 0;
  for (std::size_t i = 0; i < known.resolved_sizes.size(); ++i) {
    const Dimension* const dimension = leading_dimension(*known.input_infos[i]);
    if (known.resolved_sizes[i].empty()) continue;
    const std::int64_t fixed = dimension != nullptr ? dimension->size.value_or(0) : 0;
    if (batch_in_file == 0) batch_in_file = fixed;
    if (fixed > 0 && fixed != batch_in_file) {
      add_unique_note(fmt::format("the input {} keeps its {}: its first dimension is not the batch",
                                  quoted(known.input_infos[i]->name), sizes_text(known.resolved_sizes[i])),
                      known.notes);
      continue;
    }
    if (fixed > 0 && fixed != batch)
      add_unique_note(fmt::format("batch {} instead of the file's {}", batch, fixed), known.notes);
    known.resolved_sizes[i][0] = batch;
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

Status bind_dimension_symbols(const GraphOptions& options, InputSizes& known) {
  for (std::size_t i = 0; i < known.input_infos.size(); ++i) {
    const InputShape* const asked = find_requested_shape(options, known.input_infos[i]->name, i);
    if (asked == nullptr) continue;
    if (Status status = bind_symbols_of_input(*known.input_infos[i], *asked, known); !status) return status;
  }
  for (const ValueInfo* const input : known.input_infos) {
    const Dimension* const dimension = leading_dimension(*input);
    if (options.batch && dimension != nullptr && !dimension->size && !dimension->size_symbol.empty()) {
      known.size_by_symbol[dimension->size_symbol] = *options.batch;
    }
  }
  return Done{};
}

// The file's sizes of all inputs; empty if one of them is not fixed.
std::vector<Sizes> find_fixed_sizes(const std::vector<const ValueInfo*>& inputs) {
  std::vector<Sizes> all;
  for (const ValueInfo* const input : inputs) {
    if (!has_fixed_sizes(*input)) return {};
    Sizes sizes;
    for (const Dimension& dimension : *input->dimensions) sizes.push_back(*dimension.size);
    all.push_back(std::move(sizes));
  }
  return all;
}

}  // namespace

Result<InputSizes> input_sizes(const GraphBody& graph, const GraphOptions& options) {
  InputSizes known;
  known.input_infos = list_graph_inputs(graph);
  if (Status status = check_requested_inputs(options, known.input_infos); !status) return status.error();
  if (Status status = bind_dimension_symbols(options, known); !status) return status.error();
  std::string open;
  for (std::size_t i = 0; i < known.input_infos.size(); ++i) {
    const InputShape* const asked = find_requested_shape(options, known.input_infos[i]->name, i);
    Result<Sizes> sizes =
        asked != nullptr ? Result<Sizes>(asked->sizes) : read_input_sizes_from_file(*known.input_infos[i], known, open);
    if (!sizes) return sizes.error();
    known.resolved_sizes.push_back(*std::move(sizes));
  }
  if (options.batch) {
    set_input_batch(*options.batch, known);
  } else if (!open.empty()) {
    known.notes.push_back(fmt::format("batch 1: the file does not fix that of {}", quoted(open)));
  }
  for (std::size_t i = 0; i < known.input_infos.size(); ++i) {
    if (Status status = check_element_count(*known.input_infos[i], known.resolved_sizes[i]); !status)
      return status.error();
  }
  known.sizes_in_file = find_fixed_sizes(known.input_infos);
  if (known.sizes_in_file == known.resolved_sizes) known.sizes_in_file.clear();
  return known;
}

}  // namespace joulemap::predict::onnx

// SPDX-License-Identifier: Apache-2.0
#include "predict/onnx/input_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "predict/onnx/program.h"

namespace joulemap::predict::onnx {
namespace {

std::string dimension_text(const Dimension& dimension) {
  if (dimension.size) return std::to_string(*dimension.size);
  return dimension.symbol.empty() ? "?" : to_valid_utf8(dimension.symbol);
}

std::string dimensions_text(const std::vector<Dimension>& dimensions) {
  std::string text;
  for (const Dimension& dimension : dimensions) text += (text.empty() ? "" : "x") + dimension_text(dimension);
  return text;
}

std::string remedy_for(const ValueInfo& input, const std::vector<Dimension>& dimensions) {
  std::string example;
  for (const Dimension& dimension : dimensions) {
    const std::int64_t usual = example.empty() ? 1 : dimensions.size() == 4 ? 224 : 128;
    example += (example.empty() ? "" : "x") + std::to_string(dimension.size.value_or(usual));
  }
  return fmt::format("give its sizes: --input {}={}", to_valid_utf8(input.name), example);
}

Error usage(std::string message, std::string remedy = "") {
  return {ErrorCode::usage, std::move(message), std::move(remedy)};
}

const InputShape* asked_for(const GraphOptions& options, std::string_view name, std::size_t place) {
  std::size_t unnamed = 0;
  for (const InputShape& input : options.inputs) {
    if (input.name == name && !name.empty()) return &input;
    if (input.name.empty() && unnamed++ == place) return &input;
  }
  return nullptr;
}

Status check_asked(const GraphOptions& options, const std::vector<const ValueInfo*>& inputs) {
  if (options.batch && *options.batch < 1) {
    return usage(fmt::format("a batch of {}", *options.batch), "give a batch of at least 1: --batch 1");
  }
  std::string names;
  std::size_t unnamed = 0;
  for (const ValueInfo* const input : inputs) names += (names.empty() ? "" : ", ") + to_valid_utf8(input->name);
  for (const InputShape& asked : options.inputs) {
    unnamed += asked.name.empty() ? 1 : 0;
    const bool known = asked.name.empty() || std::any_of(inputs.begin(), inputs.end(), [&](const ValueInfo* input) {
                         return input->name == asked.name;
                       });
    if (!known) return usage(fmt::format("the network has no input {}", quoted(asked.name)), "its inputs are " + names);
    for (const std::int64_t size : asked.sizes) {
      if (size < 1) return usage(fmt::format("an input of {}", sizes_text(asked.sizes)), "sizes are at least 1");
    }
  }
  if (unnamed > inputs.size()) return usage("sizes of more inputs than there are", "its inputs are " + names);
  return Done{};
}

// What symbols stand for, by the sizes that were given for an input.
Status learn_symbols(const ValueInfo& input, const InputShape& asked, InputSizes& known) {
  if (!input.dimensions) return Done{};
  if (input.dimensions->size() != asked.sizes.size()) {
    return usage(fmt::format("the input {} has {} dimensions, {}; given were {}", quoted(input.name),
                             input.dimensions->size(), dimensions_text(*input.dimensions), sizes_text(asked.sizes)),
                 remedy_for(input, *input.dimensions));
  }
  for (std::size_t i = 0; i < asked.sizes.size(); ++i) {
    const Dimension& dimension = (*input.dimensions)[i];
    if (!dimension.size && !dimension.symbol.empty()) known.symbols.emplace(dimension.symbol, asked.sizes[i]);
  }
  return Done{};
}

// The file's own sizes with symbols bound; the leading one, where nobody knows it, is a batch of 1.
Result<Sizes> file_sizes(const ValueInfo& input, InputSizes& known) {
  if (!input.dimensions) {
    return usage(fmt::format("the sizes of the input {} are not in the file", quoted(input.name)),
                 fmt::format("give them: --input {}=1x3x224x224", to_valid_utf8(input.name)));
  }
  Sizes sizes;
  for (std::size_t i = 0; i < input.dimensions->size(); ++i) {
    const Dimension& dimension = (*input.dimensions)[i];
    const auto bound = known.symbols.find(dimension.symbol);
    const bool by_symbol = !dimension.size && !dimension.symbol.empty() && bound != known.symbols.end();
    const bool is_free = dimension.size ? *dimension.size < 1 : !by_symbol;
    if (!is_free) {
      sizes.push_back(dimension.size ? *dimension.size : bound->second);
    } else if (i == 0) {
      sizes.push_back(1);
      if (!dimension.symbol.empty()) known.symbols.emplace(dimension.symbol, 1);
      known.notes.push_back(fmt::format("batch 1: that of {} is open in the file", quoted(input.name)));
    } else {
      return usage(fmt::format("the input {} is {}: what {} is has to be given", quoted(input.name),
                               dimensions_text(*input.dimensions), dimension_text(dimension)),
                   remedy_for(input, *input.dimensions));
    }
  }
  return sizes;
}

Status check_size(const ValueInfo& input, const Sizes& sizes) {
  if (is_possible(sizes)) return Done{};
  return usage(fmt::format("the input {} of {} is larger than any memory", quoted(input.name), sizes_text(sizes)),
               "give a smaller batch or smaller sizes");
}

bool has_fixed_sizes(const ValueInfo& input) {
  return input.dimensions &&
         std::all_of(input.dimensions->begin(), input.dimensions->end(),
                     [](const Dimension& dimension) { return dimension.size && *dimension.size > 0; });
}

// Inputs that do not begin with the batch, as a table of biases does not, keep what they have.
void set_batch(std::int64_t batch, const std::vector<Sizes>& file, InputSizes& known) {
  std::int64_t of_file = 0;
  for (const Sizes& sizes : file) {
    if (of_file == 0 && !sizes.empty()) of_file = sizes[0];
  }
  for (std::size_t i = 0; i < known.sizes.size(); ++i) {
    if (known.sizes[i].empty()) continue;
    const ValueInfo& input = *known.inputs[i];
    const bool is_fixed =
        input.dimensions && !input.dimensions->empty() && input.dimensions->front().size.value_or(0) > 0;
    if (!is_fixed && input.dimensions && !input.dimensions->empty() && !input.dimensions->front().symbol.empty()) {
      known.symbols[input.dimensions->front().symbol] = batch;
    }
    if (is_fixed && known.sizes[i][0] != of_file && known.sizes[i][0] != batch) {
      known.notes.push_back(fmt::format("the input {} keeps its {}: it does not begin with the batch",
                                        quoted(input.name), sizes_text(known.sizes[i])));
      continue;
    }
    if (is_fixed && input.dimensions->front().size != batch) {
      const std::string note = fmt::format("batch {} instead of the file's {}", batch, *input.dimensions->front().size);
      if (std::find(known.notes.begin(), known.notes.end(), note) == known.notes.end()) known.notes.push_back(note);
    }
    known.sizes[i][0] = batch;
  }
}

}  // namespace

Result<InputSizes> input_sizes(const Body& graph, const GraphOptions& options) {
  InputSizes known;
  std::unordered_set<std::string_view> weights;
  for (const Tensor& weight : graph.weights) weights.insert(weight.name);
  for (const ValueInfo& input : graph.inputs) {
    if (!weights.contains(input.name)) known.inputs.push_back(&input);
  }
  if (Status status = check_asked(options, known.inputs); !status) return status.error();
  for (std::size_t i = 0; i < known.inputs.size(); ++i) {
    const InputShape* const asked = asked_for(options, known.inputs[i]->name, i);
    if (asked == nullptr) continue;
    if (Status status = learn_symbols(*known.inputs[i], *asked, known); !status) return status.error();
  }
  if (options.batch) {
    for (const ValueInfo* const input : known.inputs) {
      if (input->dimensions && !input->dimensions->empty() && !input->dimensions->front().symbol.empty()) {
        known.symbols[input->dimensions->front().symbol] = *options.batch;
      }
    }
  }
  std::vector<Sizes> file;
  bool all_fixed = true;
  for (std::size_t i = 0; i < known.inputs.size(); ++i) {
    const InputShape* const asked = asked_for(options, known.inputs[i]->name, i);
    const bool open_batch = options.batch && known.inputs[i]->dimensions && !known.inputs[i]->dimensions->empty() &&
                            !known.inputs[i]->dimensions->front().size &&
                            known.inputs[i]->dimensions->front().symbol.empty();
    Result<Sizes> sizes = asked != nullptr ? Result<Sizes>(asked->sizes) : file_sizes(*known.inputs[i], known);
    if (!sizes) return sizes.error();
    if (open_batch && asked == nullptr) known.notes.pop_back();
    all_fixed = all_fixed && has_fixed_sizes(*known.inputs[i]);
    known.sizes.push_back(*sizes);
    file.emplace_back();
    if (!has_fixed_sizes(*known.inputs[i])) continue;
    for (const Dimension& dimension : *known.inputs[i]->dimensions) file.back().push_back(*dimension.size);
  }
  if (options.batch) set_batch(*options.batch, all_fixed ? file : known.sizes, known);
  for (std::size_t i = 0; i < known.inputs.size(); ++i) {
    if (Status status = check_size(*known.inputs[i], known.sizes[i]); !status) return status.error();
  }
  if (all_fixed && file != known.sizes) known.file_sizes = std::move(file);
  return known;
}

}  // namespace joulemap::predict::onnx

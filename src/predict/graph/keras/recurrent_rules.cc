// SPDX-License-Identifier: Apache-2.0
//
// Rules for recurrent layers: one operation, as one call of cuDNN, if cuDNN supports the layer's activations. Otherwise
// step by step, as custom cells run: a product with the input, one with the state, and one kernel for the gates.
#include <fmt/format.h>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

struct RecurrentCell {
  std::int64_t unit_count = 1;
  std::int64_t gate_count = 1;
  std::int64_t state_count = 1;  // state tensors passed to the next step: an LSTM has two
  bool has_bias = true;
  bool has_two_biases = false;       // one for the input, one for the state
  bool resets_after_product = true;  // of a GRU: applies the reset gate after the product with the state
  std::string activation;
  std::string recurrent_activation;
};

struct InputSequence {
  std::int64_t batch_size = 1;
  std::int64_t time_steps = 1;
  std::int64_t feature_count = 1;
};

// Emits all gates as one kernel, as in PyTorch's cells and in compiled code.
void emit_gate_products(LayerCall& call, const InputSequence& sequence, const RecurrentCell& cell) {
  const std::string_view cell_form = cell.gate_count == 4   ? "lstm_cell"
                                     : cell.gate_count == 3 ? "gru_cell"
                                                            : "rnn_cell";
  call.emit_elementwise(Kind::activation, cell_form, {sequence.batch_size, cell.gate_count, cell.unit_count},
                        sequence.time_steps);
}

// Whether cuDNN supports the layer. Keras uses cuDNN under the same conditions.
bool runs_as_one_cudnn_call(const LayerCall& call, const RecurrentCell& cell) {
  if (cell.gate_count == 1) return cell.activation == "tanh" || cell.activation == "relu";
  const bool drops_states = call.find_option("recurrent_dropout") != nullptr &&
                            call.find_option("recurrent_dropout")->number().value_or(0) > 0;
  return cell.activation == "tanh" && cell.recurrent_activation == "sigmoid" && cell.resets_after_product &&
         !drops_states;
}

std::string_view recurrent_form_of_cell(const RecurrentCell& cell) {
  if (cell.gate_count == 4) return "lstm";
  if (cell.gate_count == 3) return "gru";
  return cell.activation == "relu" ? "rnn_relu" : "rnn_tanh";
}

// PyTorch and cuDNN have two biases; Keras trains one of them in an LSTM.
void emit_cudnn_call(LayerCall& call, const InputSequence& sequence, const RecurrentCell& cell) {
  const std::int64_t out = saturating_product(cell.gate_count, cell.unit_count);
  const std::int64_t bias = saturating_product(cell.has_two_biases ? 2 : 1, out);
  call.count_weights({saturating_product(sequence.feature_count, out), saturating_product(cell.unit_count, out),
                      cell.has_bias ? bias : 0});
  const std::size_t operation = call.emit_recurrent(recurrent_form_of_cell(cell), {{"batch", sequence.batch_size},
                                                                                   {"steps", sequence.time_steps},
                                                                                   {"in", sequence.feature_count},
                                                                                   {"hidden", cell.unit_count},
                                                                                   {"layers", 1},
                                                                                   {"directions", 1},
                                                                                   {"bias", cell.has_bias ? 1 : 0}});
  if (call.boolean_option("return_sequences", false)) call.recurrent_stack = operation;
}

void emit_recurrent_cell_operations(LayerCall& call, const InputSequence& sequence, const RecurrentCell& cell) {
  const std::int64_t out = saturating_product(cell.gate_count, cell.unit_count);
  const std::int64_t bias = saturating_product(cell.has_two_biases ? 2 : 1, out);
  call.count_weights({saturating_product(sequence.feature_count, out), cell.has_bias ? bias : 0});
  call.emit_operation(
      Kind::dense, "",
      {{"rows", sequence.batch_size}, {"in", sequence.feature_count}, {"out", out}, {"bias", cell.has_bias}},
      sequence.time_steps);
  call.count_weights({saturating_product(cell.unit_count, out)});
  call.emit_operation(
      Kind::dense, "",
      {{"rows", sequence.batch_size}, {"in", cell.unit_count}, {"out", out}, {"bias", cell.has_two_biases}},
      sequence.time_steps);
  emit_gate_products(call, sequence, cell);
}

// Reads the options of a cell from `config`, or from the layer itself if it is null.
RecurrentCell parse_recurrent_cell(LayerCall& call, std::string_view class_name, const DocumentValue* config) {
  RecurrentCell cell;
  const auto text = [&](std::string_view key, std::string_view default_value) {
    const std::string option_text = config == nullptr ? call.text_option(key) : config->text_or_empty(key);
    return option_text.empty() ? std::string(default_value) : option_text;
  };
  const auto flag = [&](std::string_view key, bool default_value) {
    return config == nullptr ? call.boolean_option(key, default_value) : config->boolean(key).value_or(default_value);
  };
  if (config == nullptr) {
    cell.unit_count = call.required_size_option("units");
  } else if (const std::int64_t units = config->integer("units").value_or(0); units >= 1 && units <= kMaxElements) {
    cell.unit_count = units;
  } else {
    call.set_failure("its cell has no units");
  }
  cell.has_bias = flag("use_bias", true);
  cell.activation = text("activation", "tanh");
  cell.recurrent_activation = text("recurrent_activation", "sigmoid");
  if (class_name.starts_with("LSTM") || class_name.starts_with("CuDNNLSTM")) {
    cell.gate_count = 4;
    cell.state_count = 2;
  } else if (class_name.starts_with("GRU") || class_name.starts_with("CuDNNGRU")) {
    cell.gate_count = 3;
    cell.resets_after_product = flag("reset_after", true);
    cell.has_two_biases = cell.has_bias && cell.resets_after_product;
  } else if (!class_name.starts_with("SimpleRNN")) {
    call.set_failure(fmt::format("its cell is a {}, which is not supported", class_name));
  }
  return cell;
}

std::vector<Shape> recurrent_output_shapes(LayerCall& call, const InputSequence& sequence,
                                           const std::vector<RecurrentCell>& cells) {
  const std::int64_t units = cells.back().unit_count;
  std::vector<Shape> shapes;
  if (call.boolean_option("return_sequences", false)) {
    shapes.push_back({sequence.batch_size, sequence.time_steps, units});
  } else {
    shapes.push_back({sequence.batch_size, units});
  }
  if (!call.boolean_option("return_state", false)) return shapes;
  for (const RecurrentCell& cell : cells)
    shapes.insert(shapes.end(), static_cast<std::size_t>(cell.state_count), {sequence.batch_size, cell.unit_count});
  return shapes;
}

InputSequence read_input_sequence(LayerCall& call) {
  call.require_dimension_count(3, 3);
  const Shape& shape = call.input_shape();
  return shape.size() == 3 ? InputSequence{shape[0], shape[1], shape[2]} : InputSequence{};
}

std::vector<Shape> apply_recurrent(LayerCall& call) {
  const InputSequence sequence = read_input_sequence(call);
  const RecurrentCell cell = parse_recurrent_cell(call, call.traits.class_name, nullptr);
  if (runs_as_one_cudnn_call(call, cell)) {
    emit_cudnn_call(call, sequence, cell);
  } else {
    emit_recurrent_cell_operations(call, sequence, cell);
  }
  return recurrent_output_shapes(call, sequence, {cell});
}

// A recurrent layer with custom cells, one or several stacked.
std::vector<Shape> apply_recurrent_cells(LayerCall& call) {
  InputSequence sequence = read_input_sequence(call);
  const InputSequence input_sequence = sequence;
  const DocumentValue* const cell = call.find_option("cell");
  const DocumentValue* const config = cell == nullptr ? nullptr : cell->find("config");
  if (config == nullptr) {
    call.set_failure("it has no cell");
    return {call.input_shape()};
  }
  std::vector<RecurrentCell> cells;
  const DocumentValue* const stacked_cells = config->find("cells");
  if (stacked_cells != nullptr && stacked_cells->array() != nullptr) {
    for (const DocumentValue& cell_json : *stacked_cells->array()) {
      cells.push_back(parse_recurrent_cell(call, cell_json.text_or_empty("class_name"), cell_json.find("config")));
    }
  } else {
    cells.push_back(parse_recurrent_cell(call, cell->text_or_empty("class_name"), config));
  }
  if (cells.empty()) {
    call.set_failure("it has no cell");
    return {call.input_shape()};
  }
  for (const RecurrentCell& recurrent_cell : cells) {
    emit_recurrent_cell_operations(call, sequence, recurrent_cell);
    sequence.feature_count = recurrent_cell.unit_count;
  }
  return recurrent_output_shapes(call, input_sequence, cells);
}

constexpr LayerClassRule kRecurrentLayerRules[] = {
    {"LSTM", apply_recurrent},      {"GRU", apply_recurrent},      {"SimpleRNN", apply_recurrent},
    {"CuDNNLSTM", apply_recurrent}, {"CuDNNGRU", apply_recurrent}, {"RNN", apply_recurrent_cells},
};

}  // namespace

std::span<const LayerClassRule> recurrent_rules() { return kRecurrentLayerRules; }

}  // namespace joulemap::predict::keras

// SPDX-License-Identifier: Apache-2.0
//
// Rules for recurrent layers: one operation, as one call of cuDNN, if cuDNN supports the layer's activations. Otherwise
// step by step, as custom cells run: a product with the input, one with the state, and one kernel for the gates.
#include <fmt/format.h>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

struct Cell {
  std::int64_t units = 1;
  std::int64_t gates = 1;
  std::int64_t states = 1;  // state tensors passed to the next step: an LSTM has two
  bool has_bias = true;
  bool has_two_biases = false;  // one for the input, one for the state
  bool resets_after = true;     // of a GRU: applies the reset gate after the product with the state
  std::string activation;
  std::string recurrent_activation;
};

struct Sequence {
  std::int64_t batch = 1;
  std::int64_t steps = 1;
  std::int64_t width = 1;
};

// Emits all gates as one kernel, as in PyTorch's cells and in compiled code.
void emit_gates(LayerCall& call, const Sequence& sequence, const Cell& cell) {
  const std::string_view form = cell.gates == 4 ? "lstm_cell" : cell.gates == 3 ? "gru_cell" : "rnn_cell";
  call.elementwise(Kind::activation, form, {sequence.batch, cell.gates, cell.units}, sequence.steps);
}

// Whether cuDNN supports the layer. Keras uses cuDNN under the same conditions.
bool is_one_call(const LayerCall& call, const Cell& cell) {
  if (cell.gates == 1) return cell.activation == "tanh" || cell.activation == "relu";
  const bool drops_states =
      call.option("recurrent_dropout") != nullptr && call.option("recurrent_dropout")->number().value_or(0) > 0;
  return cell.activation == "tanh" && cell.recurrent_activation == "sigmoid" && cell.resets_after && !drops_states;
}

std::string_view cell_form(const Cell& cell) {
  if (cell.gates == 4) return "lstm";
  if (cell.gates == 3) return "gru";
  return cell.activation == "relu" ? "rnn_relu" : "rnn_tanh";
}

// PyTorch and cuDNN have two biases; Keras trains one of them in an LSTM.
void emit_one_call(LayerCall& call, const Sequence& sequence, const Cell& cell) {
  const std::int64_t out = saturating_product(cell.gates, cell.units);
  const std::int64_t bias = saturating_product(cell.has_two_biases ? 2 : 1, out);
  call.weights(
      {saturating_product(sequence.width, out), saturating_product(cell.units, out), cell.has_bias ? bias : 0});
  const std::size_t operation = call.emit_recurrent(cell_form(cell), {{"batch", sequence.batch},
                                                                      {"steps", sequence.steps},
                                                                      {"in", sequence.width},
                                                                      {"hidden", cell.units},
                                                                      {"layers", 1},
                                                                      {"directions", 1},
                                                                      {"bias", cell.has_bias ? 1 : 0}});
  if (call.flag("return_sequences", false)) call.stack = operation;
}

void emit_cell(LayerCall& call, const Sequence& sequence, const Cell& cell) {
  const std::int64_t out = saturating_product(cell.gates, cell.units);
  const std::int64_t bias = saturating_product(cell.has_two_biases ? 2 : 1, out);
  call.weights({saturating_product(sequence.width, out), cell.has_bias ? bias : 0});
  call.emit(Kind::dense, "", {{"rows", sequence.batch}, {"in", sequence.width}, {"out", out}, {"bias", cell.has_bias}},
            sequence.steps);
  call.weights({saturating_product(cell.units, out)});
  call.emit(Kind::dense, "",
            {{"rows", sequence.batch}, {"in", cell.units}, {"out", out}, {"bias", cell.has_two_biases}},
            sequence.steps);
  emit_gates(call, sequence, cell);
}

// Reads the options of a cell from `config`, or from the layer itself if it is null.
Cell read_cell(LayerCall& call, std::string_view class_name, const DocumentValue* config) {
  Cell cell;
  const auto text = [&](std::string_view key, std::string_view otherwise) {
    const std::string found = config == nullptr ? call.word(key) : config->text_or_empty(key);
    return found.empty() ? std::string(otherwise) : found;
  };
  const auto flag = [&](std::string_view key, bool otherwise) {
    return config == nullptr ? call.flag(key, otherwise) : config->boolean(key).value_or(otherwise);
  };
  if (config == nullptr) {
    cell.units = call.size("units");
  } else if (const std::int64_t units = config->integer("units").value_or(0); units >= 1 && units <= kMaxElements) {
    cell.units = units;
  } else {
    call.fail("its cell has no units");
  }
  cell.has_bias = flag("use_bias", true);
  cell.activation = text("activation", "tanh");
  cell.recurrent_activation = text("recurrent_activation", "sigmoid");
  if (class_name.starts_with("LSTM") || class_name.starts_with("CuDNNLSTM")) {
    cell.gates = 4;
    cell.states = 2;
  } else if (class_name.starts_with("GRU") || class_name.starts_with("CuDNNGRU")) {
    cell.gates = 3;
    cell.resets_after = flag("reset_after", true);
    cell.has_two_biases = cell.has_bias && cell.resets_after;
  } else if (!class_name.starts_with("SimpleRNN")) {
    call.fail(fmt::format("its cell is a {}, which is not supported", class_name));
  }
  return cell;
}

std::vector<Shape> outputs(LayerCall& call, const Sequence& sequence, const std::vector<Cell>& cells) {
  const std::int64_t units = cells.back().units;
  std::vector<Shape> shapes;
  if (call.flag("return_sequences", false)) {
    shapes.push_back({sequence.batch, sequence.steps, units});
  } else {
    shapes.push_back({sequence.batch, units});
  }
  if (!call.flag("return_state", false)) return shapes;
  for (const Cell& cell : cells)
    shapes.insert(shapes.end(), static_cast<std::size_t>(cell.states), {sequence.batch, cell.units});
  return shapes;
}

Sequence sequence_of(LayerCall& call) {
  call.need_dimensions(3, 3);
  const Shape& shape = call.shape();
  return shape.size() == 3 ? Sequence{shape[0], shape[1], shape[2]} : Sequence{};
}

std::vector<Shape> recurrent(LayerCall& call) {
  const Sequence sequence = sequence_of(call);
  const Cell cell = read_cell(call, call.traits.class_name, nullptr);
  if (is_one_call(call, cell)) {
    emit_one_call(call, sequence, cell);
  } else {
    emit_cell(call, sequence, cell);
  }
  return outputs(call, sequence, {cell});
}

// A recurrent layer with custom cells, one or several stacked.
std::vector<Shape> recurrent_cells(LayerCall& call) {
  Sequence sequence = sequence_of(call);
  const Sequence whole = sequence;
  const DocumentValue* const cell = call.option("cell");
  const DocumentValue* const config = cell == nullptr ? nullptr : cell->find("config");
  if (config == nullptr) {
    call.fail("it has no cell");
    return {call.shape()};
  }
  std::vector<Cell> cells;
  const DocumentValue* const stacked = config->find("cells");
  if (stacked != nullptr && stacked->array() != nullptr) {
    for (const DocumentValue& each : *stacked->array()) {
      cells.push_back(read_cell(call, each.text_or_empty("class_name"), each.find("config")));
    }
  } else {
    cells.push_back(read_cell(call, cell->text_or_empty("class_name"), config));
  }
  if (cells.empty()) {
    call.fail("it has no cell");
    return {call.shape()};
  }
  for (const Cell& each : cells) {
    emit_cell(call, sequence, each);
    sequence.width = each.units;
  }
  return outputs(call, whole, cells);
}

constexpr NamedRule kRules[] = {
    {"LSTM", recurrent},      {"GRU", recurrent},      {"SimpleRNN", recurrent},
    {"CuDNNLSTM", recurrent}, {"CuDNNGRU", recurrent}, {"RNN", recurrent_cells},
};

}  // namespace

std::span<const NamedRule> recurrent_rules() { return kRules; }

}  // namespace joulemap::predict::keras

// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers (LSTM, GRU, plain RNN) as cuDNN runs a stack of them in one call: products with the input for all steps
// at once, then one step after the other, each a product with the state and its gates. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "predict/graph/operation.h"
#include "predict/graph/work.h"

namespace joulemap::predict {

struct RecurrentSizes {
  double batch = 1;
  double steps = 1;
  double in = 1;          // width of the first layer's input
  double hidden = 1;      // width of the state
  double output = 1;      // width of a direction's output: `hidden`, or an LSTM's projection
  double projection = 0;  // 0: none
  double gates = 1;       // 4 of an LSTM, 3 of a GRU
  double layers = 1;
  double directions = 1;
  bool has_bias = true;
};
RecurrentSizes recurrent_sizes(const Operation& operation);

// Elements of a forward pass; a multiply and an add are 2 FLOPs, a gate's value 1.
struct RecurrentWork {
  double flops = 0;
  double inputs = 0;
  double outputs = 0;
  double weights = 0;
  double gates = 0;           // what the products with the input leave for the steps
  double states = 0;          // gates and states that a backward pass reads
  double between_layers = 0;  // outputs of all layers but the last
};
RecurrentWork recurrent_work(const RecurrentSizes& sizes);

// Those for all steps at once; of a backward pass gradients of inputs and weights.
std::vector<Product> recurrent_products(const RecurrentSizes& sizes, Pass pass);
// That of one step of one layer.
Product recurrent_step_product(const RecurrentSizes& sizes, Pass pass);
// Elements that a layer multiplies its state with, in all directions.
double recurrent_state_weights(const RecurrentSizes& sizes);

// Which of cuDNN's algorithms PyTorch asks for (aten/src/ATen/native/cudnn/RNN.cpp, get_algo): one kernel a step, or one for
// all steps, which keeps the weights in registers.
enum class RecurrentAlgorithm : std::uint8_t { standard, persistent, persistent_small };
std::string_view name_of(RecurrentAlgorithm algorithm);
RecurrentAlgorithm recurrent_algorithm(const Operation& operation);

// Kernels of one call.
double recurrent_kernels(const Operation& operation);
// Of steps that wait for each other, before any was measured.
double recurrent_latency_s(const Operation& operation);

// Whether `next`, which reads what `stack` writes, is one more layer of it: then PyTorch runs both in one call.
bool is_next_layer(const Operation& stack, const Operation& next);
// `next` becomes a part of `stack`.
void add_layer(Operation& stack, const Operation& next);

}  // namespace joulemap::predict

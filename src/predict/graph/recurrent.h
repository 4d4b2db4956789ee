// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers (LSTM, GRU, plain RNN) as cuDNN runs a stack of them in one call: input products for all steps at
// once, then the steps in sequence, each a product with the state and its gates. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "predict/graph/operation.h"
#include "predict/graph/work.h"

namespace joulemap::predict {

struct RecurrentSizes {
  double batch = 1;
  double time_steps = 1;
  double input_width = 1;       // input width of the first layer
  double hidden_width = 1;      // width of the state
  double output_width = 1;      // output width of a direction: `hidden_width`, or an LSTM's projection
  double projection_width = 0;  // 0: none
  double gate_count = 1;        // 4 for an LSTM, 3 for a GRU
  double layer_count = 1;
  double direction_count = 1;
  bool has_bias = true;
};
RecurrentSizes recurrent_sizes(const Operation& operation);

// Amounts of a forward pass: FLOPs (a multiply and an add are 2, a gate value is 1), and numbers of elements.
struct RecurrentWork {
  double flops = 0;
  double inputs = 0;
  double outputs = 0;
  double weights = 0;
  double gates = 0;                    // results of the input products that the steps read
  double gradient_state_elements = 0;  // gates and states that a backward pass reads
  double inter_layer_elements = 0;     // outputs of all layers but the last
};
RecurrentWork compute_recurrent_work(const RecurrentSizes& sizes);

// The products that run for all steps at once; in a backward pass those for the gradients of inputs and weights.
std::vector<MatrixProduct> recurrent_matrix_products(const RecurrentSizes& sizes, Pass pass);
// The product with the state in one step of one layer, `count` times for the directions.
MatrixProduct recurrent_step_product(const RecurrentSizes& sizes, Pass pass);
// Number of elements of the weights that multiply the hidden state of a recurrent layer, of all its directions.
double count_recurrent_state_weights(const RecurrentSizes& sizes);

// The cuDNN algorithm that PyTorch requests (aten/src/ATen/native/cudnn/RNN.cpp, get_algo). standard: separate kernels
// for each step. persistent and persistent_small: one kernel for all steps, which keeps the weights in registers.
enum class RecurrentAlgorithm : std::uint8_t { standard, persistent, persistent_small };
std::string_view name_of(RecurrentAlgorithm algorithm);
RecurrentAlgorithm recurrent_algorithm(const Operation& operation);

// Number of kernels that one call launches.
double recurrent_kernels(const Operation& operation);
// Latency of the time steps, s, from assumed constants.
double recurrent_latency_s(const Operation& operation);

// Whether `next_layer`, which reads the output of `stack`, is its next layer: PyTorch then runs both in one call.
bool is_next_recurrent_layer(const Operation& stack, const Operation& next_layer);
// Adds the layers of `next_layer` to `stack`, and its name to the layer's name.
void append_recurrent_layer(Operation& stack, const Operation& next_layer);

}  // namespace joulemap::predict

// SPDX-License-Identifier: Apache-2.0
//
// Parses a framework's name for a graph operation into its scope: phase, layer, operation. After compilation, the names
// are all that is left of the program's structure. Pure functions.
//
//   JAX           jit(step)/transpose(jvp(Net))/block_0/Dense_1/dot_general   backward, block_0.Dense_1, dot_general
//   TensorFlow    gradient_tape/sequential_1/dense_2/MatMul/MatMul_1          backward, dense_2, MatMul
//   TensorFlow 1  Adam/update_net/dense/kernel/ResourceApplyAdam              optimizer, dense, ResourceApplyAdam
//   ONNX Runtime  /layer1/layer1.0/conv1/Conv                                 forward, layer1.0.conv1, Conv
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace joulemap::scopes {

// Unknown members are empty.
struct OpScope {
  std::string phase;
  std::string module;  // dotted
  std::string op;
  std::string tensors;  // its input tensors, as in tensor_text.h, after the name of the node where it has one

  friend auto operator<=>(const OpScope&, const OpScope&) = default;  // NOLINT: clang-tidy 14 sees a null pointer
};

// Meaning of a TensorFlow graph scope, which Keras reports when it opens the scope. TensorFlow renumbers scopes, so
// "dense_1" can be the second scope of the layer `dense`. Keys of NameScopes are paths of scopes, such as
// "sequential_1/dense_1", or names of operations.
struct NameScope {
  std::string phase;  // empty: backward where the name shows it, else forward
  std::string module;
};
using NameScopes = std::map<std::string, NameScope, std::less<>>;

// `type`: for instance MatMul; empty when only the name is known. Scopes missing from the table are used as written.
OpScope scope_of_tensorflow_op(std::string_view node, std::string_view type, const NameScopes& name_scopes);
// The name of a node without the prefixes of function calls and graph optimizations.
std::string remove_call_name_parts(std::string_view name);

// `is_training_program`: the program computes gradients, so its operations outside of forward and backward update
// parameters.
OpScope scope_of_xla_op(std::string_view op_name, bool is_training_program);
// Whether an operation of that name computes gradients.
bool is_gradient_op(std::string_view op_name);

OpScope scope_of_onnx_node(std::string_view node, std::string_view type);

}  // namespace joulemap::scopes

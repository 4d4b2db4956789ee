// SPDX-License-Identifier: Apache-2.0
//
// From the name that a framework gives an operation of its graph to the place it belongs to: phase, layer, operation. The
// names are all that is left of the program once a graph has been compiled. Pure; any thread.
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

namespace joulemap::ingest {

// What is not known is empty.
struct OpPlace {
  std::string phase;
  std::string module;  // dotted
  std::string op;
  std::string tensors;  // what it is given: tensor_text.h

  friend auto operator<=>(const OpPlace&, const OpPlace&) = default;  // NOLINT: clang-tidy 14 sees a null pointer
};

// What a scope of a TensorFlow graph stands for, as Keras told when it made it: TensorFlow numbers scopes anew, so that
// "dense_1" can be the second scope of the layer `dense`. An operation may be told by its own name, too.
struct ScopeMeaning {
  std::string phase;  // empty: forward, or backward where the name says so
  std::string module;
};
using ScopeTable = std::map<std::string, ScopeMeaning, std::less<>>;

// `type`: MatMul, or empty when only the name is known. Scopes that are not in the table are taken as they are written.
OpPlace place_of_tensorflow_op(std::string_view node, std::string_view type, const ScopeTable& scopes);

// `trains`: the program it is of computes gradients, so that what is no part of them updates parameters.
OpPlace place_of_xla_op(std::string_view op_name, bool trains);
// Whether an operation of that name computes gradients.
bool is_of_gradients(std::string_view op_name);

OpPlace place_of_onnx_node(std::string_view node, std::string_view type);

}  // namespace joulemap::ingest

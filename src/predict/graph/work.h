// SPDX-License-Identifier: Apache-2.0
//
// FLOPs and bytes of an operation, computed from its sizes alone. Pure.
//
// The convention for every kind (docs/reference/prediction-data.md): a multiply and an add are 2 FLOPs; attention is
// two matrix products, causal or not; a recurrent layer has the products of all of its steps; an element-wise operation
// is 1 FLOP for each element that it writes. Bytes are the least traffic: each input tensor is read once, each output
// written once. A backward pass reads the gradient of the output, the saved tensors and the weights, and writes the
// gradients of inputs and weights. Its FLOPs are twice the forward ones for matrix products (once for
// Pass::backward_weights), else the same.
#pragma once

#include <vector>

#include "predict/graph/operation.h"

namespace joulemap::predict {

// A matrix product [m, k] x [k, n], `count` times at once: the shape that tensor cores process.
struct MatrixProduct {
  double m = 0;
  double n = 0;
  double k = 0;
  double count = 1;
};

struct OperationWork {
  double flops = 0;
  double bytes = 0;
  double inputs = 0;   // elements
  double outputs = 0;  // elements
  double weights = 0;  // elements
  std::vector<MatrixProduct> products;
};

// Work of one operation, regardless of its count.
OperationWork compute_work(const Operation& operation);

double bytes_per_element(Dtype dtype);

// Kinds that are matrix products, which run on tensor cores if the type allows it.
bool is_matrix_product(Kind kind);

// Output size of a convolution, pooling, padding or resize.
struct SpatialExtent {
  double height = 0;
  double width = 0;
  double depth = 1;
};
SpatialExtent output_extent(const OperationParameters& parameters);

}  // namespace joulemap::predict

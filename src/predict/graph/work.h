// SPDX-License-Identifier: Apache-2.0
//
// How much arithmetic an operation does and how much memory it moves, by its sizes alone. Pure.
//
// The convention, for every kind (docs/prediction-data.md): a multiply and an add are 2 FLOPs; attention is two matrix
// products, causal or not; a recurrent layer has the products of all of its steps; what computes element by element is 1
// FLOP for each element that it writes. Bytes are those that have to move at least: each tensor that is read once, each
// that is written once. A backward pass reads the gradient of the output, what the forward pass kept and the weights, and
// writes the gradients of inputs and weights; its FLOPs are twice the forward ones where there are weights, else the same.
#pragma once

#include <vector>

#include "predict/graph/operation.h"

namespace joulemap::predict {

// A product of matrices [m, k] x [k, n], `count` times at once; what tensor cores see of an operation.
struct Product {
  double m = 0;
  double n = 0;
  double k = 0;
  double count = 1;
};

struct Work {
  double flops = 0;
  double bytes = 0;
  double inputs = 0;   // elements
  double outputs = 0;  // elements
  double weights = 0;  // elements
  std::vector<Product> products;
};

// Of one operation, whatever its count.
Work work_of(const Operation& operation);

double bytes_of(Dtype dtype);

// Multiplied by, added to, divided by tensors and weights: what runs on tensor cores where the type allows it.
bool is_product(Kind kind);

// Height and width of what a convolution or a pooling writes.
struct Extent {
  double height = 0;
  double width = 0;
  double depth = 1;
};
Extent output_extent(const Parameters& parameters);

}  // namespace joulemap::predict

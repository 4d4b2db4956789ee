// SPDX-License-Identifier: Apache-2.0
//
// The card of an operation: predicted time and energy of a call by size, precision and pass, with advice for authors of
// networks, as a framework's documentation could show it. Pure; computed from the model of a profile, with warm caches.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predict/graph/operation.h"
#include "predict/model/device_profile.h"
#include "predict/model/explanation.h"

namespace joulemap::predict {

// The meaning of a name of PyTorch, Keras, ONNX or operation.h.
struct CardOperation {
  std::string name;  // as requested
  Kind kind = Kind::unknown;
  std::string form;
  std::string variant;  // "depthwise" and "1d" for convolutions
};

// "torch.nn.Conv2d", "F.relu", "keras.layers.Dense", "Gemm", "convolution". The Error suggests similar names.
Result<CardOperation> find_card_operation(std::string_view name);

struct CardExampleSize {
  std::string text;  // "4096 x 1024 -> 1024"
  Parameters parameters;
  bool is_unaligned = false;  // the preceding size, changed to no multiples of 8
};
// From small to large, the odd one last; within the measured range.
std::vector<CardExampleSize> card_example_sizes(const CardOperation& subject);

struct CardRow {
  std::string size;
  bool is_unaligned = false;
  Operation operation;
  double time_s = 0;
  double energy_j = 0;
  double flops = 0;
  double bytes = 0;
  Bound bound = Bound::launch;
  double trust = 0;
};

struct OperationCard {
  CardOperation subject;
  std::string device;
  bool fitted = true;
  bool is_measured = true;          // false: physics alone, because no operation of the kind was measured
  std::vector<CardRow> rows;        // by size, precision, pass
  std::vector<std::string> advice;  // sentences with numbers from the rows
};

OperationCard make_operation_card(const DeviceProfile& profile, const CardOperation& subject);

// Advice for the reader of a card, derived from its rows only.
std::vector<std::string> card_advice(std::span<const CardRow> rows);

}  // namespace joulemap::predict

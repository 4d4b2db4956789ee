// SPDX-License-Identifier: Apache-2.0
//
// The table of an operation: predicted time and energy of a call by size, precision and pass, with advice for authors
// of networks, as a framework's documentation could show it. Pure; computed from the model of a profile, with warm
// caches.
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

// An operation that a user names as PyTorch, Keras, ONNX or operation.h do.
struct NamedOperation {
  std::string name;  // as requested
  Kind kind = Kind::unknown;
  std::string form;
  std::string variant;  // "depthwise" and "1d" for convolutions
};

// Looks up a name such as "torch.nn.Conv2d", "F.relu", "keras.layers.Dense", "Gemm" or "convolution". The Error
// suggests similar names.
Result<NamedOperation> find_operation(std::string_view name);

struct ExampleSize {
  std::string text;  // "4096 x 1024 -> 1024"
  OperationParameters parameters;
  bool is_unaligned = false;  // the preceding size, with dimensions that are not multiples of 8
};
// From small to large, within the measured range. A size with is_unaligned comes last.
std::vector<ExampleSize> list_example_sizes(const NamedOperation& subject);

struct OperationRow {
  std::string size;
  bool is_unaligned = false;
  Operation operation;
  double time_s = 0;
  double energy_j = 0;
  double flops = 0;
  double bytes = 0;
  LimitingResource bound = LimitingResource::launch;
  double trust_factor = 0;
};

struct OperationTable {
  NamedOperation subject;
  std::string device;
  bool fitted = true;
  bool is_measured = true;          // false: physics alone, because no operation of the kind was measured
  std::vector<OperationRow> rows;   // by size, precision, pass
  std::vector<std::string> advice;  // sentences with numbers from the rows
};

OperationTable make_operation_table(const DeviceProfile& profile, const NamedOperation& subject);

// Advice for authors of networks, as sentences, derived from the rows of a table only.
std::vector<std::string> operation_advice(std::span<const OperationRow> rows);

}  // namespace joulemap::predict

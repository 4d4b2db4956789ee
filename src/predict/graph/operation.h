// SPDX-License-Identifier: Apache-2.0
//
// One operation of a network. Graph readers, measurements (docs/reference/prediction-data.md) and predictions share
// this vocabulary. Plain data; sizes are in elements, never in bytes.
//
// Content of `parameters` by kind (those in brackets are optional):
//   dense          rows in out bias                 a matrix product with weights: y[rows, out] = x[rows, in] w
//   bmm            batch m k n [transposed]         a product of two computed matrices, `batch` times
//   attention      batch heads queries keys width [causal]       scaled dot product attention as one operation
//   convolution    batch channels out height width kernel stride padding dilation groups bias [channels_last]
//                  [kernel_width stride_width padding_width dilation_width] if they differ from the height's,
//                  [out_height out_width] if padding is uneven, [depth kernel_depth out_depth], [transposed]
//                  one-dimensional: height 1, kernel 1
//   pooling        batch channels height width kernel stride padding; form adaptive: batch channels height width out;
//                  both with [kernel_width stride_width padding_width out_height out_width]
//   padding, resize            batch channels height width and padding | out, [out_height out_width]
//   normalization  batch channels height width [frozen: keeps its statistics in training];
//                  forms layer and rms: `channels` numbers are normalized `batch` times
//   activation, dropout, rescaling, cast, reshape, add, multiply, concatenate, reduce, view, unknown
//                  batch rows width: any factors of the size of the larger of input and output tensor
//                  (for concatenate: of one part, with `parts`); rescaling: [from_bytes]; reduce: [over];
//                  unknown: [in out], counts of elements
//   embedding      vocabulary width tokens
//   recurrent      batch steps in hidden layers directions bias [projection]     the whole stack of layers as one call;
//                  `in` is the width of its input, `projection` that of an LSTM's output if it is not `hidden`
//   loss           rows classes
//   input          batch channels height width [pinned bytes]: a copy from the host, from pinned memory, of bytes
//   optimizer      tensors elements [fused: one kernel] [foreach: 0 for a kernel per tensor];
//                  form sgd momentum adam adamw rmsprop
//
// Content of `form` by kind; kinds that are not listed have none:
//   activation     relu gelu silu sigmoid tanh softmax hardswish leaky_relu relu6 log_softmax, or any other name for a
//                  function that reads and writes each element once
//   pooling        max avg adaptive
//   normalization  batch (with the statistics of the batch) batch-inference layer group rms
//   add, multiply  by the second tensor: same (of one shape) row ([batch, rows, 1]) last ([width]) scalar
//   reduce         mean sum amax; `over` is 0 for the width, 1 for rows, 2 for all elements
//   padding        constant reflect replicate
//   resize         nearest bilinear
//   cast           the type that it casts to
//   reshape        a copy into another order: heads channels-last channels-first transpose, or gather (reads by index)
//   recurrent      lstm gru rnn_tanh rnn_relu
// An operation that moves no data and launches no kernel is a view.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace joulemap::predict {

enum class Kind : std::uint8_t {
  dense,
  bmm,
  attention,
  convolution,
  pooling,
  padding,
  normalization,
  activation,
  rescaling,
  reshape,
  dropout,
  add,
  multiply,
  concatenate,
  embedding,
  loss,
  resize,
  cast,
  reduce,
  input,
  optimizer,
  view,
  unknown,
  recurrent,  // added last: trees of existing profiles split by these numbers
};
inline constexpr std::size_t kOperationKindCount = static_cast<std::size_t>(Kind::recurrent) + 1;
// tf32: 32-bit numbers whose products are computed in 19 bits. Default precision and autocast are options of a run, not
// of an operation (Precision in model/predictor.h).
enum class Dtype : std::uint8_t { fp32, tf32, fp16, bf16 };
enum class Pass : std::uint8_t { forward, backward, backward_weights, optimizer };
// Gradients that a backward pass computes for an operation: none (nothing trainable before it), those of its weights
// only (its input is the network's input), or all.
enum class NeededGradients : std::uint8_t { none, weights, all };

std::string_view name_of(Kind kind);
std::string_view name_of(Dtype dtype);
std::string_view name_of(Pass pass);
std::optional<Kind> kind_from_name(std::string_view name);
std::optional<Dtype> dtype_from_name(std::string_view name);
std::optional<Pass> pass_from_name(std::string_view name);

// A few named integers. A vector preserves their order, and a search through about a dozen is fast.
class OperationParameters {
 public:
  OperationParameters() = default;
  OperationParameters(std::initializer_list<std::pair<std::string_view, std::int64_t>> named_values);

  void set(std::string_view name, std::int64_t value);
  std::optional<std::int64_t> find(std::string_view name) const;
  std::int64_t get(std::string_view name, std::int64_t default_value) const {
    return find(name).value_or(default_value);
  }
  const std::vector<std::pair<std::string, std::int64_t>>& entries() const { return entries_; }
  bool operator==(const OperationParameters&) const = default;

 private:
  std::vector<std::pair<std::string, std::int64_t>> entries_;
};

struct Operation {
  std::string layer;   // module path, or node name
  std::string source;  // name in the graph: "Conv", "aten.convolution"
  Kind kind = Kind::unknown;
  std::string form;  // empty if the kind has none
  OperationParameters parameters;
  Dtype dtype = Dtype::fp32;
  Pass pass = Pass::forward;
  NeededGradients gradient = NeededGradients::all;  // of forward operations: gradients that training needs
  std::int64_t count = 1;                           // number of identical operations
};

// False for an operation of unknown kind and unknown size. It adds nothing to a total: it may launch nothing, such as
// the arithmetic of shapes.
bool has_lower_bound(const Operation& operation);

// How a convolution splits its channels: not at all, in groups, or depthwise (one input and one output channel per
// group). With several output channels per input channel, libraries use the grouped algorithms.
enum class ConvolutionGrouping : std::uint8_t { none, groups, depthwise };
ConvolutionGrouping classify_convolution_grouping(const Operation& operation);

// Parses "rows=8;in=64;out=10;bias=1", optionally with the form: "form=relu;batch=1". The Error describes what is
// malformed.
struct FormAndParameters {
  std::string form;
  OperationParameters parameters;
};
Result<FormAndParameters> parse_parameters(std::string_view text);
std::string parameters_text(const Operation& operation);

}  // namespace joulemap::predict

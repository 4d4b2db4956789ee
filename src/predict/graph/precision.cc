// SPDX-License-Identifier: Apache-2.0
//
// Assigns types to operations for the precision of a run. Autocast follows PyTorch's lists (docs: Automatic Mixed
// Precision, CUDA Op-Specific Behavior): products run in 16 bits with their inputs and weights cast, some others in 32,
// the rest in the type of their inputs.
#include <array>
#include <string>
#include <utility>

#include "predict/graph/last_matrix_product_tracker.h"
#include "predict/graph/work.h"
#include "predict/model/predictor.h"

namespace joulemap::predict {
namespace {

bool is_16_bit_type(Dtype dtype) { return dtype == Dtype::fp16 || dtype == Dtype::bf16; }

std::int64_t to_element_count(double elements) { return static_cast<std::int64_t>(elements); }

// Operations that autocast runs in 32 bits, or whose inputs stay in 32 bits because nothing casts them.
bool needs_fp32(const Operation& operation) {
  switch (operation.kind) {
    case Kind::normalization:
      return operation.form == "layer" || operation.form == "group";
    case Kind::activation:
      return operation.form == "softmax" || operation.form == "log_softmax";
    case Kind::reduce:
      return operation.form == "sum";
    case Kind::loss:
    case Kind::resize:
    case Kind::embedding:
    case Kind::input:
    case Kind::optimizer:
      return true;
    default:
      return false;
  }
}

// Whether autocast runs a cast kernel before an operation in 32 bits. Softmax and sums cast while they read; an
// embedding reads nothing that could be in 16 bits.
bool casts_inputs_to_fp32(Kind kind) { return kind == Kind::normalization || kind == Kind::resize; }

class AutocastRewriter {
 public:
  std::vector<Operation> operations;

  void add(Operation operation) {
    if (operation.pass != Pass::forward) {
      if (is_matrix_product(operation.kind)) operation.dtype = low_precision_dtype(operation);
    } else if (is_matrix_product(operation.kind)) {
      cast_matrix_product_inputs(operation);
    } else if (operation.kind == Kind::cast) {
      output_dtype_ = dtype_from_name(operation.form).value_or(output_dtype_);
    } else if (!is_16_bit_type(operation.dtype)) {
      operation.dtype = prepare_non_product_dtype(operation);
      output_dtype_ = operation.kind == Kind::view ? output_dtype_ : operation.dtype;
    } else {
      output_dtype_ = operation.dtype;
    }
    last_product_tracker_.update(operation);
    operations.push_back(std::move(operation));
  }

 private:
  // The 16-bit type of a product: bf16, but fp16 for cuDNN's recurrent layers, even if autocast uses bf16.
  static Dtype low_precision_dtype(const Operation& operation) {
    if (is_16_bit_type(operation.dtype)) return operation.dtype;
    return operation.kind == Kind::recurrent ? Dtype::fp16 : Dtype::bf16;
  }

  void append_cast(const Operation& operation, double elements, Dtype source_dtype, Dtype target_dtype,
                   NeededGradients gradient) {
    Operation cast_operation;
    cast_operation.layer = operation.layer;
    cast_operation.source = operation.source;
    cast_operation.kind = Kind::cast;
    cast_operation.form = name_of(target_dtype);
    cast_operation.parameters = {{"batch", 1}, {"rows", 1}, {"width", to_element_count(elements)}};
    cast_operation.dtype = source_dtype;
    cast_operation.gradient = gradient;
    cast_operation.count = operation.count;
    operations.push_back(std::move(cast_operation));
  }

  void cast_matrix_product_inputs(Operation& operation) {
    const bool was_16_bit = is_16_bit_type(operation.dtype);
    operation.dtype = low_precision_dtype(operation);
    if (was_16_bit) {
      output_dtype_ = operation.dtype;
      return;
    }
    const bool is_cast = is_16_bit_type(output_dtype_) ? was_last_product_input_cast_ &&
                                                             last_product_tracker_.has_input_of_last_product(operation)
                                                       : true;
    const OperationWork work = compute_work(operation);
    const NeededGradients input_gradients =
        operation.gradient == NeededGradients::all ? NeededGradients::all : NeededGradients::none;
    if (is_cast)
      append_cast(operation, count_cast_input_elements(operation, work), Dtype::fp32, operation.dtype, input_gradients);
    was_last_product_input_cast_ = is_cast;
    if (operation.kind == Kind::dense || operation.kind == Kind::convolution) cast_weights(operation, work);
    if (operation.kind == Kind::recurrent) {
      const NeededGradients weight_gradients =
          operation.gradient == NeededGradients::none ? NeededGradients::none : NeededGradients::all;
      append_cast(operation, work.weights, Dtype::fp32, operation.dtype, weight_gradients);
    }
    output_dtype_ = operation.dtype;
  }

  // Weights and bias are two tensors and take two cast kernels.
  void cast_weights(const Operation& operation, const OperationWork& work) {
    const double bias =
        operation.parameters.get("bias", 0) != 0 ? static_cast<double>(operation.parameters.get("out", 0)) : 0;
    const NeededGradients gradient =
        operation.gradient == NeededGradients::none ? NeededGradients::none : NeededGradients::all;
    append_cast(operation, work.weights - bias, Dtype::fp32, operation.dtype, gradient);
    if (bias > 0) append_cast(operation, bias, Dtype::fp32, operation.dtype, gradient);
  }

  // Number of elements of the computed inputs that a cast converts: for a bmm those of the first operand, for attention
  // all three.
  static double count_cast_input_elements(const Operation& operation, const OperationWork& work) {
    if (operation.kind == Kind::attention) return work.weights;
    if (operation.kind != Kind::bmm) return work.inputs;
    const OperationParameters& p = operation.parameters;
    double elements = 1;
    for (const std::string_view name : {"batch", "m", "k"}) elements *= static_cast<double>(p.get(name, 1));
    return elements;
  }

  Dtype prepare_non_product_dtype(const Operation& operation) {
    if (needs_fp32(operation)) {
      if (casts_inputs_to_fp32(operation.kind) && is_16_bit_type(output_dtype_)) {
        append_cast(operation, compute_work(operation).inputs, output_dtype_, Dtype::fp32, operation.gradient);
      }
      is_residual_fp32_ =
          is_residual_fp32_ || operation.kind == Kind::normalization || operation.kind == Kind::embedding;
      return Dtype::fp32;
    }
    const bool is_binary_operation = operation.kind == Kind::add || operation.kind == Kind::multiply;
    // A row of weights stays in 32 bits, so its sum or product with any tensor is in 32 bits.
    if (is_binary_operation && operation.form == "last") return Dtype::fp32;
    // A residual stays in 32 bits if a norm or an embedding produced it, whatever is added.
    if (operation.kind == Kind::add && operation.form == "same" && is_residual_fp32_) return Dtype::fp32;
    return output_dtype_;
  }

  Dtype output_dtype_ = Dtype::fp32;  // type of the last result
  bool is_residual_fp32_ = false;
  bool was_last_product_input_cast_ = false;  // whether the input of the last product was cast
  LastMatrixProductTracker last_product_tracker_;
};

Dtype dtype_without_autocast(const Operation& operation, Precision precision) {
  if (is_16_bit_type(operation.dtype)) return operation.dtype;
  switch (precision) {
    case Precision::framework_default:
      return operation.kind == Kind::convolution || operation.kind == Kind::recurrent ? Dtype::tf32 : Dtype::fp32;
    case Precision::tf32:
      return is_matrix_product(operation.kind) ? Dtype::tf32 : Dtype::fp32;
    case Precision::fp16:
      return Dtype::fp16;
    case Precision::bf16:
      return Dtype::bf16;
    case Precision::fp32:
    case Precision::amp_bf16:
      return Dtype::fp32;
  }
  return operation.dtype;
}

}  // namespace

Graph apply_precision(Graph graph, Precision precision) {
  // Lists traced from PyTorch contain the types of PyTorch's default precision already.
  if (precision == Precision::framework_default && graph.format == "torch") return graph;
  if (precision != Precision::amp_bf16) {
    for (Operation& operation : graph.operations) operation.dtype = dtype_without_autocast(operation, precision);
    return graph;
  }
  AutocastRewriter autocast;
  for (Operation& operation : graph.operations) autocast.add(std::move(operation));
  graph.operations = std::move(autocast.operations);
  return graph;
}

}  // namespace joulemap::predict

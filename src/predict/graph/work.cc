// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/work.h"

#include <algorithm>
#include <cmath>

#include "predict/graph/recurrent.h"

namespace joulemap::predict {
namespace {

// Amounts of a forward pass: FLOPs, and elements of the computing type.
struct ForwardPassWork {
  double flops = 0;
  double inputs = 0;
  double outputs = 0;
  double weights = 0;
  double saved_for_backward = 0;     // saved tensors that the backward pass reads besides gradient and weights
  double intermediate_elements = 0;  // intermediate results that the forward pass writes and reads again
  double gradients = 0;              // written by the backward pass besides gradients of inputs and weights
  double other_bytes = 0;            // indices, masks, images of bytes: independent of the type
};

double parameter_or(const OperationParameters& parameters, std::string_view name, double default_value = 1) {
  const std::optional<std::int64_t> parameter_value = parameters.find(name);
  return parameter_value ? static_cast<double>(*parameter_value) : default_value;
}

double image_element_count(const OperationParameters& p) {
  return parameter_or(p, "batch") * parameter_or(p, "channels") * parameter_or(p, "height") * parameter_or(p, "width") *
         parameter_or(p, "depth");
}
double tensor_element_count(const OperationParameters& p) {
  return parameter_or(p, "batch") * parameter_or(p, "rows") * parameter_or(p, "width");
}

double window_output_size(double size, double kernel, double stride, double padding, double dilation) {
  const double kernel_extent = dilation * (kernel - 1) + 1;
  return std::max(0.0, std::floor((size + 2 * padding - kernel_extent) / std::max(1.0, stride)) + 1);
}

double kernel_window_area(const OperationParameters& p) {
  const double height = parameter_or(p, "kernel");
  return height * parameter_or(p, "kernel_width", height) * parameter_or(p, "kernel_depth");
}

ForwardPassWork dense_forward_work(const OperationParameters& p) {
  const double rows = parameter_or(p, "rows");
  const double input_width = parameter_or(p, "in");
  const double out = parameter_or(p, "out");
  return {.flops = 2 * rows * input_width * out,
          .inputs = rows * input_width,
          .outputs = rows * out,
          .weights = input_width * out + parameter_or(p, "bias", 0) * out,
          .saved_for_backward = rows * input_width};
}

// Both operands count as weights, because the backward pass has two products, as with weights.
ForwardPassWork bmm_forward_work(const OperationParameters& p) {
  const double batch = parameter_or(p, "batch");
  const double operand_elements =
      batch * (parameter_or(p, "m") * parameter_or(p, "k") + parameter_or(p, "k") * parameter_or(p, "n"));
  return {.flops = 2 * batch * parameter_or(p, "m") * parameter_or(p, "k") * parameter_or(p, "n"),
          .outputs = batch * parameter_or(p, "m") * parameter_or(p, "n"),
          .weights = operand_elements};
}

// Query, key and value count as weights: the backward pass reads them again and writes their gradients.
ForwardPassWork attention_forward_work(const OperationParameters& p) {
  const double heads = parameter_or(p, "batch") * parameter_or(p, "heads");
  const double query = heads * parameter_or(p, "queries") * parameter_or(p, "width");
  const double key = heads * parameter_or(p, "keys") * parameter_or(p, "width");
  return {.flops = 4 * heads * parameter_or(p, "queries") * parameter_or(p, "keys") * parameter_or(p, "width"),
          .outputs = query,
          .weights = query + 2 * key,
          .saved_for_backward = query};
}

ForwardPassWork convolution_forward_work(const OperationParameters& p) {
  const SpatialExtent out = output_extent(p);
  const double pixels = out.height * out.width * out.depth;
  const double filters = parameter_or(p, "out") *
                         std::floor(parameter_or(p, "channels") / std::max(1.0, parameter_or(p, "groups"))) *
                         kernel_window_area(p);
  const double input_elements = image_element_count(p);
  // A transposed convolution multiplies every input pixel instead of every output pixel.
  const double multiplied_elements = parameter_or(p, "transposed", 0) != 0
                                         ? input_elements / std::max(1.0, parameter_or(p, "channels"))
                                         : parameter_or(p, "batch") * pixels;
  return {.flops = 2 * multiplied_elements * filters,
          .inputs = input_elements,
          .outputs = parameter_or(p, "batch") * parameter_or(p, "out") * pixels,
          .weights = filters + parameter_or(p, "bias", 0) * parameter_or(p, "out"),
          .saved_for_backward = input_elements};
}

ForwardPassWork pooling_forward_work(const Operation& operation) {
  const OperationParameters& p = operation.parameters;
  const double image_count = parameter_or(p, "batch") * parameter_or(p, "channels");
  const SpatialExtent out = output_extent(p);
  const double outputs = image_count * out.height * out.width * out.depth;
  if (operation.form == "adaptive")
    return {.flops = image_element_count(p), .inputs = image_element_count(p), .outputs = outputs};
  return {.flops = outputs * kernel_window_area(p),
          .inputs = image_element_count(p),
          .outputs = outputs,
          .other_bytes = operation.form == "max" ? 8 * outputs : 0};
}

ForwardPassWork resize_forward_work(const OperationParameters& p) {
  const SpatialExtent out = output_extent(p);
  const double outputs = parameter_or(p, "batch") * parameter_or(p, "channels") * out.height * out.width * out.depth;
  return {.flops = outputs, .inputs = image_element_count(p), .outputs = outputs};
}

ForwardPassWork binary_forward_work(const Operation& operation) {
  const OperationParameters& p = operation.parameters;
  const double size = tensor_element_count(p);
  double second_operand_elements = 1;
  if (operation.form == "same") second_operand_elements = size;
  if (operation.form == "row") second_operand_elements = parameter_or(p, "batch") * parameter_or(p, "rows");
  if (operation.form == "last") second_operand_elements = parameter_or(p, "width");
  ForwardPassWork forward_work{.flops = size, .inputs = size + second_operand_elements, .outputs = size};
  if (operation.kind == Kind::multiply) forward_work.saved_for_backward = size + second_operand_elements;
  return forward_work;
}

// Eager mode runs two kernels, or three from bytes, which write and read intermediate results.
ForwardPassWork rescaling_forward_work(const OperationParameters& p) {
  const double size = tensor_element_count(p);
  if (parameter_or(p, "from_bytes", 0) != 0) {
    return {.flops = 2 * size, .outputs = size, .intermediate_elements = 4 * size, .other_bytes = size};
  }
  return {.flops = 2 * size, .inputs = size, .outputs = size, .intermediate_elements = 2 * size};
}

ForwardPassWork reduction_forward_work(const OperationParameters& p) {
  const double size = tensor_element_count(p);
  const double reduced_axes = parameter_or(p, "over", 0);
  const double output_elements = reduced_axes == 0   ? parameter_or(p, "batch") * parameter_or(p, "rows")
                                 : reduced_axes == 1 ? parameter_or(p, "batch") * parameter_or(p, "width")
                                                     : 1;
  return {.flops = size, .inputs = size, .outputs = output_elements};
}

ForwardPassWork optimizer_step_work(const Operation& operation) {
  const double elements = parameter_or(operation.parameters, "elements");
  const double optimizer_state_count = operation.form == "sgd"                                 ? 0
                                       : operation.form == "adam" || operation.form == "adamw" ? 2
                                                                                               : 1;
  return {.flops = (2 + 4 * optimizer_state_count) * elements,
          .inputs = (2 + optimizer_state_count) * elements,
          .outputs = (1 + optimizer_state_count) * elements};
}

ForwardPassWork input_copy_work(const OperationParameters& p) {
  if (parameter_or(p, "bytes", 0) != 0) return {.other_bytes = image_element_count(p)};
  return {.outputs = image_element_count(p)};
}

ForwardPassWork cast_forward_work(const Operation& operation) {
  const double size = tensor_element_count(operation.parameters);
  return {.inputs = size, .other_bytes = size * (operation.form == "fp32" ? 4 : 2)};
}

ForwardPassWork embedding_forward_work(const OperationParameters& p) {
  const double moved_elements = parameter_or(p, "tokens") * parameter_or(p, "width");
  return {.flops = moved_elements,
          .inputs = moved_elements,
          .outputs = moved_elements,
          .gradients = parameter_or(p, "vocabulary") * parameter_or(p, "width"),
          .other_bytes = 8 * parameter_or(p, "tokens")};
}

ForwardPassWork recurrent_forward_work(const Operation& operation) {
  const RecurrentWork work = compute_recurrent_work(recurrent_sizes(operation));
  return {.flops = work.flops,
          .inputs = work.inputs,
          .outputs = work.outputs,
          .weights = work.weights,
          .saved_for_backward = work.inputs + work.gradient_state_elements,
          .intermediate_elements = 2 * work.gates + 2 * work.inter_layer_elements,
          .gradients = 2 * work.gates};
}

ForwardPassWork compute_forward_work(const Operation& operation) {
  const OperationParameters& p = operation.parameters;
  const double size = tensor_element_count(p);
  switch (operation.kind) {
    case Kind::dense:
      return dense_forward_work(p);
    case Kind::bmm:
      return bmm_forward_work(p);
    case Kind::attention:
      return attention_forward_work(p);
    case Kind::convolution:
      return convolution_forward_work(p);
    case Kind::pooling:
      return pooling_forward_work(operation);
    case Kind::padding:
    case Kind::resize:
      return resize_forward_work(p);
    case Kind::normalization:
      return {.flops = image_element_count(p),
              .inputs = image_element_count(p),
              .outputs = image_element_count(p),
              .weights = 2 * parameter_or(p, "channels"),
              .saved_for_backward = image_element_count(p)};
    case Kind::activation:
      return {.flops = size, .inputs = size, .outputs = size, .saved_for_backward = size};
    case Kind::rescaling:
      return rescaling_forward_work(p);
    case Kind::dropout:
      return {.flops = size, .inputs = size, .outputs = size, .other_bytes = size};
    case Kind::add:
    case Kind::multiply:
      return binary_forward_work(operation);
    case Kind::reshape:
      return {.inputs = size, .outputs = size};
    case Kind::concatenate:
      return {.inputs = parameter_or(p, "parts") * size, .outputs = parameter_or(p, "parts") * size};
    case Kind::embedding:
      return embedding_forward_work(p);
    case Kind::loss: {
      const double scores = parameter_or(p, "rows") * parameter_or(p, "classes");
      return {.flops = scores,
              .inputs = scores,
              .outputs = scores,
              .saved_for_backward = scores,
              .other_bytes = 8 * parameter_or(p, "rows")};
    }
    case Kind::cast:
      return cast_forward_work(operation);
    case Kind::reduce:
      return reduction_forward_work(p);
    case Kind::input:
      return input_copy_work(p);
    case Kind::optimizer:
      return optimizer_step_work(operation);
    case Kind::recurrent:
      return recurrent_forward_work(operation);
    case Kind::view:
      return {};
    case Kind::unknown:
      return {.flops = parameter_or(p, "out", size),
              .inputs = parameter_or(p, "in", size),
              .outputs = parameter_or(p, "out", size)};
  }
  return {};
}

std::vector<MatrixProduct> convolution_matrix_products(const OperationParameters& p, Pass pass) {
  const double groups = std::max(1.0, parameter_or(p, "groups"));
  const double window_area = kernel_window_area(p);
  const double channels_per_group = std::max(1.0, std::floor(parameter_or(p, "channels") / groups));
  const SpatialExtent out = output_extent(p);
  const MatrixProduct forward{parameter_or(p, "batch") * out.height * out.width * out.depth,
                              std::max(1.0, parameter_or(p, "out") / groups), channels_per_group * window_area, groups};
  if (pass == Pass::forward) return {forward};
  std::vector<MatrixProduct> products = {{forward.n, forward.k, forward.m, groups}};
  if (pass == Pass::backward) {
    products.push_back(
        {parameter_or(p, "batch") * parameter_or(p, "height") * parameter_or(p, "width") * parameter_or(p, "depth"),
         channels_per_group, forward.n * window_area, groups});
  }
  return products;
}

std::vector<MatrixProduct> matrix_products(const Operation& operation) {
  const OperationParameters& p = operation.parameters;
  const bool forward = operation.pass == Pass::forward;
  switch (operation.kind) {
    case Kind::convolution:
      return convolution_matrix_products(p, operation.pass);
    case Kind::dense:
    case Kind::bmm: {
      const MatrixProduct forward_product =
          operation.kind == Kind::dense
              ? MatrixProduct{parameter_or(p, "rows"), parameter_or(p, "out"), parameter_or(p, "in"), 1}
              : MatrixProduct{parameter_or(p, "m"), parameter_or(p, "n"), parameter_or(p, "k"),
                              parameter_or(p, "batch")};
      if (forward) return {forward_product};
      std::vector<MatrixProduct> products = {
          {forward_product.n, forward_product.k, forward_product.m, forward_product.count}};
      if (operation.pass == Pass::backward)
        products.push_back({forward_product.m, forward_product.k, forward_product.n, forward_product.count});
      return products;
    }
    case Kind::attention: {
      const MatrixProduct scores{parameter_or(p, "queries"), parameter_or(p, "keys"), parameter_or(p, "width"),
                                 parameter_or(p, "batch") * parameter_or(p, "heads")};
      const MatrixProduct value_product{scores.m, scores.k, scores.n, scores.count};
      if (forward) return {scores, value_product};
      return {scores, value_product, scores, value_product, scores};
    }
    case Kind::recurrent:
      return recurrent_matrix_products(recurrent_sizes(operation), operation.pass);
    default:
      return {};
  }
}

}  // namespace

double bytes_per_element(Dtype dtype) { return dtype == Dtype::fp32 || dtype == Dtype::tf32 ? 4 : 2; }

bool is_matrix_product(Kind kind) {
  return kind == Kind::dense || kind == Kind::bmm || kind == Kind::attention || kind == Kind::convolution ||
         kind == Kind::recurrent;
}

SpatialExtent output_extent(const OperationParameters& p) {
  const auto side = [&p](std::string_view size, const std::string& suffix, std::string_view output_size_name) {
    if (const auto out_size = p.find(output_size_name)) return static_cast<double>(*out_size);
    if (const auto out_size = p.find("out"); out_size && !p.find("kernel"))
      return static_cast<double>(*out_size);  // adaptive pooling and resize
    const auto side_parameter = [&](const std::string& name, double default_value) {
      return parameter_or(p, name + suffix, parameter_or(p, name, default_value));
    };
    return window_output_size(parameter_or(p, size), side_parameter("kernel", 1), side_parameter("stride", 1),
                              side_parameter("padding", 0), side_parameter("dilation", 1));
  };
  SpatialExtent extent{side("height", "", "out_height"), side("width", "_width", "out_width")};
  extent.depth = parameter_or(p, "out_depth");
  return extent;
}

OperationWork compute_work(const Operation& operation) {
  const ForwardPassWork forward_work = compute_forward_work(operation);
  OperationWork work{.inputs = forward_work.inputs,
                     .outputs = forward_work.outputs,
                     .weights = forward_work.weights,
                     .products = matrix_products(operation)};
  const double size = bytes_per_element(operation.dtype);
  if (operation.pass == Pass::forward || operation.pass == Pass::optimizer) {
    work.flops = forward_work.flops;
    work.bytes = size * (forward_work.inputs + forward_work.weights + forward_work.outputs +
                         forward_work.intermediate_elements) +
                 forward_work.other_bytes;
    return work;
  }
  const double read_elements = forward_work.outputs + forward_work.saved_for_backward;
  if (operation.pass == Pass::backward_weights) {
    work.flops = forward_work.flops;
    work.bytes = size * (read_elements + forward_work.weights) + forward_work.other_bytes;
    return work;
  }
  const bool has_two_products = forward_work.weights > 0 && forward_work.flops > forward_work.outputs;
  work.flops = forward_work.flops * (has_two_products ? 2 : 1);
  work.bytes = size * (read_elements + forward_work.inputs + 2 * forward_work.weights + forward_work.gradients) +
               forward_work.other_bytes;
  return work;
}

}  // namespace joulemap::predict

// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/work.h"

#include <algorithm>
#include <cmath>

#include "predict/graph/recurrent.h"

namespace joulemap::predict {
namespace {

// Amounts of a forward pass: FLOPs, and elements of the computing type.
struct Amounts {
  double flops = 0;
  double inputs = 0;
  double outputs = 0;
  double weights = 0;
  double saved = 0;        // saved tensors that the backward pass reads besides gradient and weights
  double between = 0;      // intermediate results that the forward pass writes and reads again
  double gradients = 0;    // written by the backward pass besides gradients of inputs and weights
  double other_bytes = 0;  // indices, masks, images of bytes: independent of the type
};

double of(const Parameters& parameters, std::string_view name, double otherwise = 1) {
  const std::optional<std::int64_t> found = parameters.find(name);
  return found ? static_cast<double>(*found) : otherwise;
}

double image(const Parameters& p) {
  return of(p, "batch") * of(p, "channels") * of(p, "height") * of(p, "width") * of(p, "depth");
}
double tensor(const Parameters& p) { return of(p, "batch") * of(p, "rows") * of(p, "width"); }

double pooled(double size, double kernel, double stride, double padding, double dilation) {
  const double reach = dilation * (kernel - 1) + 1;
  return std::max(0.0, std::floor((size + 2 * padding - reach) / std::max(1.0, stride)) + 1);
}

double kernel_area(const Parameters& p) {
  const double height = of(p, "kernel");
  return height * of(p, "kernel_width", height) * of(p, "kernel_depth");
}

Amounts dense(const Parameters& p) {
  const double rows = of(p, "rows");
  const double in = of(p, "in");
  const double out = of(p, "out");
  return {.flops = 2 * rows * in * out,
          .inputs = rows * in,
          .outputs = rows * out,
          .weights = in * out + of(p, "bias", 0) * out,
          .saved = rows * in};
}

// Both operands count as weights, because the backward pass has two products, as with weights.
Amounts bmm(const Parameters& p) {
  const double batch = of(p, "batch");
  const double both = batch * (of(p, "m") * of(p, "k") + of(p, "k") * of(p, "n"));
  return {.flops = 2 * batch * of(p, "m") * of(p, "k") * of(p, "n"),
          .outputs = batch * of(p, "m") * of(p, "n"),
          .weights = both};
}

// Query, key and value count as weights: the backward pass reads them again and writes their gradients.
Amounts attention(const Parameters& p) {
  const double heads = of(p, "batch") * of(p, "heads");
  const double query = heads * of(p, "queries") * of(p, "width");
  const double key = heads * of(p, "keys") * of(p, "width");
  return {.flops = 4 * heads * of(p, "queries") * of(p, "keys") * of(p, "width"),
          .outputs = query,
          .weights = query + 2 * key,
          .saved = query};
}

Amounts convolution(const Parameters& p) {
  const SpatialExtent out = output_extent(p);
  const double pixels = out.height * out.width * out.depth;
  const double filters = of(p, "out") * std::floor(of(p, "channels") / std::max(1.0, of(p, "groups"))) * kernel_area(p);
  const double into = image(p);
  // A transposed convolution multiplies every input pixel instead of every output pixel.
  const double multiplied =
      of(p, "transposed", 0) != 0 ? into / std::max(1.0, of(p, "channels")) : of(p, "batch") * pixels;
  return {.flops = 2 * multiplied * filters,
          .inputs = into,
          .outputs = of(p, "batch") * of(p, "out") * pixels,
          .weights = filters + of(p, "bias", 0) * of(p, "out"),
          .saved = into};
}

Amounts pooling(const Operation& operation) {
  const Parameters& p = operation.parameters;
  const double images = of(p, "batch") * of(p, "channels");
  const SpatialExtent out = output_extent(p);
  const double outputs = images * out.height * out.width * out.depth;
  if (operation.form == "adaptive") return {.flops = image(p), .inputs = image(p), .outputs = outputs};
  return {.flops = outputs * kernel_area(p),
          .inputs = image(p),
          .outputs = outputs,
          .other_bytes = operation.form == "max" ? 8 * outputs : 0};
}

Amounts resized(const Parameters& p) {
  const SpatialExtent out = output_extent(p);
  const double outputs = of(p, "batch") * of(p, "channels") * out.height * out.width * out.depth;
  return {.flops = outputs, .inputs = image(p), .outputs = outputs};
}

Amounts pair(const Operation& operation) {
  const Parameters& p = operation.parameters;
  const double size = tensor(p);
  double second = 1;
  if (operation.form == "same") second = size;
  if (operation.form == "row") second = of(p, "batch") * of(p, "rows");
  if (operation.form == "last") second = of(p, "width");
  Amounts amounts{.flops = size, .inputs = size + second, .outputs = size};
  if (operation.kind == Kind::multiply) amounts.saved = size + second;
  return amounts;
}

// Eager mode runs two kernels, or three from bytes, which write and read intermediate results.
Amounts rescaling(const Parameters& p) {
  const double size = tensor(p);
  if (of(p, "from_bytes", 0) != 0) {
    return {.flops = 2 * size, .outputs = size, .between = 4 * size, .other_bytes = size};
  }
  return {.flops = 2 * size, .inputs = size, .outputs = size, .between = 2 * size};
}

Amounts reduce(const Parameters& p) {
  const double size = tensor(p);
  const double over = of(p, "over", 0);
  const double left = over == 0 ? of(p, "batch") * of(p, "rows") : over == 1 ? of(p, "batch") * of(p, "width") : 1;
  return {.flops = size, .inputs = size, .outputs = left};
}

Amounts optimizer(const Operation& operation) {
  const double elements = of(operation.parameters, "elements");
  const double states = operation.form == "sgd" ? 0 : operation.form == "adam" || operation.form == "adamw" ? 2 : 1;
  return {.flops = (2 + 4 * states) * elements, .inputs = (2 + states) * elements, .outputs = (1 + states) * elements};
}

Amounts input(const Parameters& p) {
  if (of(p, "bytes", 0) != 0) return {.other_bytes = image(p)};
  return {.outputs = image(p)};
}

Amounts cast(const Operation& operation) {
  const double size = tensor(operation.parameters);
  return {.inputs = size, .other_bytes = size * (operation.form == "fp32" ? 4 : 2)};
}

Amounts embedding(const Parameters& p) {
  const double moved = of(p, "tokens") * of(p, "width");
  return {.flops = moved,
          .inputs = moved,
          .outputs = moved,
          .gradients = of(p, "vocabulary") * of(p, "width"),
          .other_bytes = 8 * of(p, "tokens")};
}

Amounts recurrent_amounts(const Operation& operation) {
  const RecurrentWork work = recurrent_work(recurrent_sizes(operation));
  return {.flops = work.flops,
          .inputs = work.inputs,
          .outputs = work.outputs,
          .weights = work.weights,
          .saved = work.inputs + work.states,
          .between = 2 * work.gates + 2 * work.between_layers,
          .gradients = 2 * work.gates};
}

Amounts amounts_of(const Operation& operation) {
  const Parameters& p = operation.parameters;
  const double size = tensor(p);
  switch (operation.kind) {
    case Kind::dense:
      return dense(p);
    case Kind::bmm:
      return bmm(p);
    case Kind::attention:
      return attention(p);
    case Kind::convolution:
      return convolution(p);
    case Kind::pooling:
      return pooling(operation);
    case Kind::padding:
    case Kind::resize:
      return resized(p);
    case Kind::normalization:
      return {.flops = image(p),
              .inputs = image(p),
              .outputs = image(p),
              .weights = 2 * of(p, "channels"),
              .saved = image(p)};
    case Kind::activation:
      return {.flops = size, .inputs = size, .outputs = size, .saved = size};
    case Kind::rescaling:
      return rescaling(p);
    case Kind::dropout:
      return {.flops = size, .inputs = size, .outputs = size, .other_bytes = size};
    case Kind::add:
    case Kind::multiply:
      return pair(operation);
    case Kind::reshape:
      return {.inputs = size, .outputs = size};
    case Kind::concatenate:
      return {.inputs = of(p, "parts") * size, .outputs = of(p, "parts") * size};
    case Kind::embedding:
      return embedding(p);
    case Kind::loss: {
      const double scores = of(p, "rows") * of(p, "classes");
      return {.flops = scores, .inputs = scores, .outputs = scores, .saved = scores, .other_bytes = 8 * of(p, "rows")};
    }
    case Kind::cast:
      return cast(operation);
    case Kind::reduce:
      return reduce(p);
    case Kind::input:
      return input(p);
    case Kind::optimizer:
      return optimizer(operation);
    case Kind::recurrent:
      return recurrent_amounts(operation);
    case Kind::view:
      return {};
    case Kind::unknown:
      return {.flops = of(p, "out", size), .inputs = of(p, "in", size), .outputs = of(p, "out", size)};
  }
  return {};
}

std::vector<MatrixProduct> convolution_products(const Parameters& p, Pass pass) {
  const double groups = std::max(1.0, of(p, "groups"));
  const double area = kernel_area(p);
  const double into = std::max(1.0, std::floor(of(p, "channels") / groups));
  const SpatialExtent out = output_extent(p);
  const MatrixProduct forward{of(p, "batch") * out.height * out.width * out.depth, std::max(1.0, of(p, "out") / groups),
                              into * area, groups};
  if (pass == Pass::forward) return {forward};
  std::vector<MatrixProduct> products = {{forward.n, forward.k, forward.m, groups}};
  if (pass == Pass::backward) {
    products.push_back(
        {of(p, "batch") * of(p, "height") * of(p, "width") * of(p, "depth"), into, forward.n * area, groups});
  }
  return products;
}

std::vector<MatrixProduct> products_of(const Operation& operation) {
  const Parameters& p = operation.parameters;
  const bool forward = operation.pass == Pass::forward;
  switch (operation.kind) {
    case Kind::convolution:
      return convolution_products(p, operation.pass);
    case Kind::dense:
    case Kind::bmm: {
      const MatrixProduct one = operation.kind == Kind::dense
                                    ? MatrixProduct{of(p, "rows"), of(p, "out"), of(p, "in"), 1}
                                    : MatrixProduct{of(p, "m"), of(p, "n"), of(p, "k"), of(p, "batch")};
      if (forward) return {one};
      std::vector<MatrixProduct> products = {{one.n, one.k, one.m, one.count}};
      if (operation.pass == Pass::backward) products.push_back({one.m, one.k, one.n, one.count});
      return products;
    }
    case Kind::attention: {
      const MatrixProduct scores{of(p, "queries"), of(p, "keys"), of(p, "width"), of(p, "batch") * of(p, "heads")};
      const MatrixProduct mixed{scores.m, scores.k, scores.n, scores.count};
      if (forward) return {scores, mixed};
      return {scores, mixed, scores, mixed, scores};
    }
    case Kind::recurrent:
      return recurrent_products(recurrent_sizes(operation), operation.pass);
    default:
      return {};
  }
}

}  // namespace

double bytes_of(Dtype dtype) { return dtype == Dtype::fp32 || dtype == Dtype::tf32 ? 4 : 2; }

bool is_product(Kind kind) {
  return kind == Kind::dense || kind == Kind::bmm || kind == Kind::attention || kind == Kind::convolution ||
         kind == Kind::recurrent;
}

SpatialExtent output_extent(const Parameters& p) {
  const auto side = [&p](std::string_view size, const std::string& suffix, std::string_view written) {
    if (const auto out_size = p.find(written)) return static_cast<double>(*out_size);
    if (const auto out_size = p.find("out"); out_size && !p.find("kernel"))
      return static_cast<double>(*out_size);  // adaptive pooling and resize
    const auto one = [&](const std::string& name, double otherwise) {
      return of(p, name + suffix, of(p, name, otherwise));
    };
    return pooled(of(p, size), one("kernel", 1), one("stride", 1), one("padding", 0), one("dilation", 1));
  };
  SpatialExtent extent{side("height", "", "out_height"), side("width", "_width", "out_width")};
  extent.depth = of(p, "out_depth");
  return extent;
}

Work work_of(const Operation& operation) {
  const Amounts amounts = amounts_of(operation);
  Work work{.inputs = amounts.inputs,
            .outputs = amounts.outputs,
            .weights = amounts.weights,
            .products = products_of(operation)};
  const double size = bytes_of(operation.dtype);
  if (operation.pass == Pass::forward || operation.pass == Pass::optimizer) {
    work.flops = amounts.flops;
    work.bytes = size * (amounts.inputs + amounts.weights + amounts.outputs + amounts.between) + amounts.other_bytes;
    return work;
  }
  const double read = amounts.outputs + amounts.saved;
  if (operation.pass == Pass::backward_weights) {
    work.flops = amounts.flops;
    work.bytes = size * (read + amounts.weights) + amounts.other_bytes;
    return work;
  }
  const bool twice = amounts.weights > 0 && amounts.flops > amounts.outputs;
  work.flops = amounts.flops * (twice ? 2 : 1);
  work.bytes = size * (read + amounts.inputs + 2 * amounts.weights + amounts.gradients) + amounts.other_bytes;
  return work;
}

}  // namespace joulemap::predict

// SPDX-License-Identifier: Apache-2.0
#include "predict/model/features.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "predict/graph/recurrent.h"

namespace joulemap::predict {
namespace {

constexpr std::array<std::string_view, 40> kFeatureNames = {
    "kind",       "form",           "dtype",           "pass",         "cold",      "in_network",
    "flops",      "bytes",          "intensity",       "roof_ratio",   "m",         "n",
    "k",          "products",       "inputs",          "outputs",      "weights",   "wave_fill",
    "edge_fill",  "k_multiple",     "n_multiple",      "cache_fill",   "kernel",    "stride",
    "grouped",    "depthwise",      "channels_last",   "causal",       "dilation",  "transposed",
    "way",        "width_multiple", "height",          "width",        "alignment", "tiled",
    "tile_waste", "memory_time",    "kernels_in_pass", "physical_time"};
// Monotonicity of measured / physical time: it may only rise from cache to memory (cold), and only fall with better
// filled tiles and waves, with larger powers of two in the sizes, and with alignment_class().
constexpr std::array<int, 40> kFeatureMonotonicity = {0,  0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0,  0, 0, -1, -1, -1,
                                                      -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, -1, 0, 0, 0,  0,  0};

// Forms that run different code. A form is encoded by its index, so the order must not change.
constexpr std::array<std::string_view, 34> kFeatureForms = {"",
                                                            "relu",
                                                            "relu6",
                                                            "leaky_relu",
                                                            "hardswish",
                                                            "sigmoid",
                                                            "tanh",
                                                            "silu",
                                                            "gelu",
                                                            "softmax",
                                                            "log_softmax",
                                                            "max",
                                                            "avg",
                                                            "adaptive",
                                                            "batch",
                                                            "batch-inference",
                                                            "layer",
                                                            "group",
                                                            "rms",
                                                            "same",
                                                            "row",
                                                            "last",
                                                            "scalar",
                                                            "mean",
                                                            "sum",
                                                            "amax",
                                                            "constant",
                                                            "reflect",
                                                            "replicate",
                                                            "nearest",
                                                            "bilinear",
                                                            "heads",
                                                            "channels-last",
                                                            "transpose"};

double clamped_logarithm(double value) { return std::log(std::max(value, 1e-30)); }

double operation_form_code(const std::string& operation_form) {
  const auto* matching_form = std::find(kFeatureForms.begin(), kFeatureForms.end(), operation_form);
  return static_cast<double>(matching_form - kFeatureForms.begin());
}

// Exponent of the largest power of two, at most 64, that divides the size.
double power_of_two_exponent(double size) {
  double exponent = 0;
  for (double divisor = 2; divisor <= 64 && std::fmod(size, divisor) == 0; divisor *= 2) ++exponent;
  return exponent;
}

MatrixProduct representative_matrix_product(const Operation& operation, const OperationWork& work) {
  if (operation.kind == Kind::recurrent) return recurrent_step_product(recurrent_sizes(operation), operation.pass);
  if (!work.products.empty()) return work.products.front();
  const OperationParameters& p = operation.parameters;
  const auto parameter_value = [&p](std::string_view name) { return static_cast<double>(p.get(name, 1)); };
  switch (operation.kind) {
    case Kind::normalization:
      if (operation.form == "layer" || operation.form == "rms")
        return {parameter_value("batch"), parameter_value("channels"), parameter_value("channels"), 1};
      return {parameter_value("batch") * parameter_value("height") * parameter_value("width"),
              parameter_value("channels"), parameter_value("height") * parameter_value("width"), 1};
    case Kind::embedding:
      return {parameter_value("tokens"), parameter_value("width"), parameter_value("vocabulary"), 1};
    case Kind::loss:
      return {parameter_value("rows"), parameter_value("classes"), 1, 1};
    case Kind::optimizer:
      return {parameter_value("tensors"), parameter_value("elements"), 1, 1};
    case Kind::pooling:
    case Kind::padding:
    case Kind::resize:
    case Kind::input:
      return {parameter_value("batch") * parameter_value("channels"),
              parameter_value("height") * parameter_value("width"), parameter_value("kernel"), 1};
    default:
      return {parameter_value("batch") * parameter_value("rows"), parameter_value("width"), parameter_value("rows"),
              parameter_value("parts")};
  }
}

double kernel_variant_code(const OperationParameters& p) {
  if (p.get("fused", 0) != 0) return 1;
  if (p.get("foreach", 1) == 0) return 2;
  return static_cast<double>(p.get("over", 0) +
                             4 * (p.get("pinned", 0) + 2 * (p.get("bytes", 0) + p.get("from_bytes", 0))));
}

// Values of recurrent layers for columns that other kinds use differently: kernel, stride, dilation, way and height.
struct RecurrentFeatures {
  double gates = 0;
  double layers = 0;
  double directions = 1;
  double algorithm = 0;
  double steps = 0;
};
RecurrentFeatures recurrent_features(const Operation& operation) {
  if (operation.kind != Kind::recurrent) return {};
  const RecurrentSizes sizes = recurrent_sizes(operation);
  return {sizes.gate_count, sizes.layer_count, sizes.direction_count,
          static_cast<double>(recurrent_algorithm(operation)), sizes.time_steps};
}

}  // namespace

std::span<const std::string_view> feature_names() { return kFeatureNames; }
std::span<const int> feature_monotonicity() { return kFeatureMonotonicity; }

std::vector<float> make_features(const Operation& operation, const OperationWork& work, const TimeTerms& terms,
                                 const Datasheet& datasheet, const CallConditions& conditions, double physical_time_s) {
  const OperationParameters& p = operation.parameters;
  const auto parameter_value = [&p](std::string_view name, std::int64_t default_value) {
    return static_cast<double>(p.get(name, default_value));
  };
  const double peak = datasheet.peak_flops[static_cast<std::size_t>(operation.dtype)];
  const MatrixProduct product = representative_matrix_product(operation, work);
  const double tiles = std::ceil(product.m / 128) * std::ceil(product.n / 128) * product.count;
  const double waves = tiles / datasheet.multiprocessors;
  const double compute_s = work.flops / peak;
  const double memory_s = work.bytes / datasheet.memory_bytes_per_s;
  const ConvolutionGrouping grouping = classify_convolution_grouping(operation);
  const double memory_traffic_s = terms[PhysicsTerm::cache] + terms[PhysicsTerm::memory];
  const RecurrentFeatures recurrent = recurrent_features(operation);
  const bool is_recurrent = operation.kind == Kind::recurrent;
  const std::array<double, 40> values = {
      static_cast<double>(operation.kind),
      operation_form_code(operation.form),
      static_cast<double>(operation.dtype),
      static_cast<double>(operation.pass),
      conditions.is_cache_cold ? 1.0 : 0.0,
      conditions.in_network ? 1.0 : 0.0,
      clamped_logarithm(work.flops + 1),
      clamped_logarithm(work.bytes + 1),
      clamped_logarithm((work.flops + 1) / (work.bytes + 1)),
      clamped_logarithm((compute_s + 1e-12) / (memory_s + 1e-12)),
      clamped_logarithm(product.m),
      clamped_logarithm(product.n),
      clamped_logarithm(product.k),
      clamped_logarithm(product.count),
      clamped_logarithm(work.inputs + 1),
      clamped_logarithm(work.outputs + 1),
      clamped_logarithm(work.weights + 1),
      waves / std::max(1.0, std::ceil(waves)),
      product.m * product.n / (std::ceil(product.m / 128) * std::ceil(product.n / 128) * 128 * 128),
      power_of_two_exponent(product.k),
      power_of_two_exponent(product.n),
      clamped_logarithm(work.bytes / datasheet.cache_bytes + 1e-9),
      parameter_value("kernel", 0) + recurrent.gates,
      parameter_value("stride", 0) + recurrent.layers,
      grouping != ConvolutionGrouping::none ? 1.0 : 0.0,
      grouping == ConvolutionGrouping::depthwise ? 1.0 : 0.0,
      parameter_value("channels_last", 0),
      parameter_value("causal", 0),
      is_recurrent ? recurrent.directions : parameter_value("dilation", 1),
      parameter_value("transposed", 0),
      kernel_variant_code(p) + recurrent.algorithm,
      power_of_two_exponent(parameter_value("width", 1)),
      parameter_value("height", 0) + recurrent.steps,
      parameter_value("width", 0),
      static_cast<double>(alignment_class(operation)),
      clamped_logarithm(terms[PhysicsTerm::tiles] + terms[PhysicsTerm::tensor_launches] + 1e-9),
      work.products.empty() ? 0.0 : clamped_logarithm((terms[PhysicsTerm::tiles] * peak + 1) / (work.flops + 1)),
      clamped_logarithm(memory_traffic_s + 1e-9),
      static_cast<double>(work.products.size()),
      clamped_logarithm(physical_time_s)};
  return {values.begin(), values.end()};
}

}  // namespace joulemap::predict

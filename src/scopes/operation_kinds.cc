// SPDX-License-Identifier: Apache-2.0
#include "scopes/operation_kinds.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <string>

namespace joulemap::scopes {
namespace {

using enum OperationKind;

struct OperationKindRule {
  std::string_view name_part;
  OperationKind kind;
};

// The first rule applies whose name_part occurs in the name of an operation, in lower case without underscores.
constexpr OperationKindRule kOperationKindRules[] = {
    {"attention", attention},
    {"flashattn", attention},
    {"convertelementtype", copy},
    {"conv", convolution},
    {"softmax", softmax},
    {"batchnorm", normalization},
    {"layernorm", normalization},
    {"groupnorm", normalization},
    {"instancenorm", normalization},
    {"rmsnorm", normalization},
    {"embedding", embedding},
    {"crossentropy", loss},
    {"nllloss", loss},
    {"mseloss", loss},
    {"lossbackward", loss},
    {"pool", pooling},
    {"matmul", matmul},
    {"addmm", matmul},
    {"addmv", matmul},
    {"baddbmm", matmul},
    {"scaledmm", matmul},
    {"einsum", matmul},
    {"dotgeneral", matmul},
    {"tensordot", matmul},
    {"gemm", matmul},
    {"bilinear", matmul},
    {"allreduce", communication},
    {"allgather", communication},
    {"reducescatter", communication},
    {"alltoall", communication},
    {"ppermute", communication},
    {"adam", optimizer},
};

// Whole names of operations, in lower case without underscores.
constexpr std::string_view kMatmulOperationNames[] = {"linear", "mm",    "bmm",   "dot",        "mv",
                                                      "ger",    "outer", "inner", "fusedmatmul"};
constexpr std::string_view kReductionOperationNames[] = {
    "sum",        "mean",   "amax",      "amin", "max",  "min",     "argmax",           "argmin",       "norm",
    "var",        "std",    "prod",      "any",  "all",  "varmean", "reducesum",        "reducemax",    "reducemin",
    "reducemean", "cumsum", "logsumexp", "topk", "sort", "argsort", "linalgvectornorm", "clipgradnorm", "item"};
constexpr std::string_view kCopyOperationNames[] = {
    "contiguous",   "clone",       "copy",       "tocopy",         "cat",
    "concat",       "concatenate", "concatv2",   "stack",          "reshape",
    "to",           "type",        "float",      "half",           "bfloat16",
    "double",       "cuda",        "cpu",        "repeat",         "repeatinterleave",
    "tile",         "expand",      "pad",        "padv2",          "constantpadnd",
    "index",        "getitem",     "setitem",    "indexput",       "indexselect",
    "gather",       "scatter",     "slice",      "select",         "transpose",
    "permute",      "view",        "unsafeview", "unbind",         "split",
    "chunk",        "flatten",     "cast",       "roll",           "flip",
    "movedim",      "unsqueeze",   "squeeze",    "broadcastindim", "dynamicupdateslice",
    "dynamicslice", "identity"};
constexpr std::string_view kElementwiseOperationNames[] = {"add",       "radd",          "iadd",       "sub",
                                                           "rsub",      "mul",           "rmul",       "imul",
                                                           "div",       "truediv",       "rtruediv",   "neg",
                                                           "pow",       "square",        "sqrt",       "rsqrt",
                                                           "exp",       "log",           "log1p",      "expm1",
                                                           "tanh",      "sigmoid",       "logistic",   "relu",
                                                           "relu6",     "leakyrelu",     "elu",        "gelu",
                                                           "silu",      "mish",          "hardtanh",   "hardswish",
                                                           "dropout",   "nativedropout", "where",      "clamp",
                                                           "maximum",   "minimum",       "abs",        "sign",
                                                           "cos",       "sin",           "erf",        "addcmul",
                                                           "addcdiv",   "lerp",          "maskedfill", "biasadd",
                                                           "threshold", "fill",          "zero",       "accumulategrad",
                                                           "addv2",     "realdiv",       "gelutanh",   "softplus",
                                                           "rpow",      "selu",          "celu",       "glu",
                                                           "prelu",     "randn",         "bernoulli",  "normal",
                                                           "uniform"};

// The first rule applies whose name_part occurs in the name of a kernel, in lower case.
constexpr OperationKindRule kKernelKindRules[] = {
    // Copies, by their direction.
    {"htod", host_copy},
    {"dtoh", host_copy},
    {"pageable", host_copy},
    {"pinned", host_copy},
    {"dtod", copy},
    {"device -> device", copy},
    {"memset", copy},
    // Layouts.
    {"nchwtonhwc", layout},
    {"nhwctonchw", layout},
    {"nchw2nhwc", layout},
    {"nhwc2nchw", layout},
    {"converttensor_kernel", layout},
    {"nhwcaddpadding", layout},
    {"nccl", communication},
    // Triton and XLA name a fused kernel after its operations.
    {"attention", attention},
    {"flash_fwd", attention},
    {"flash_bwd", attention},
    {"fmha", attention},
    {"sdpa", attention},
    {"layer_norm", normalization},
    {"layernorm", normalization},
    {"layer_norm_grad", normalization},
    {"batch_norm", normalization},
    {"batchnorm", normalization},
    {"bn_fw", normalization},
    {"bn_bw", normalization},
    {"group_norm", normalization},
    {"rowwisemoments", normalization},
    {"gammabeta", normalization},
    {"rms_norm", normalization},
    {"rmsnorm", normalization},
    {"softmax", softmax},
    {"nll_loss", loss},
    {"fprop", convolution},
    {"dgrad", convolution},
    {"wgrad", convolution},
    {"convol", convolution},
    {"conv2d", convolution},
    {"winograd", convolution},
    {"implicit_gemm", convolution},
    {"scudnn", convolution},
    {"fft2d_", convolution},
    {"gemm", matmul},
    {"gemv", matmul},
    {"nvjet", matmul},
    {"cutlass", matmul},
    {"splitkreduce", matmul},
    {"cublas", matmul},
    {"dot_kernel", matmul},
    {"triton_tem", matmul},
    {"adam", optimizer},
    {"pool", pooling},
    {"embedding", embedding},
    {"catarraybatchedcopy", copy},
    {"direct_copy", copy},
    {"index_elementwise", copy},
    {"indexselect", embedding},
    {"gather", embedding},
    {"copy", copy},
    {"transpose", copy},
    {"triton_red", reduction},
    {"triton_per", reduction},
    {"triton_poi", elementwise},
    {"reduce", reduction},
    {"norm", reduction},
    {"elementwise", elementwise},
    {"multi_tensor_apply", elementwise},
    {"loop_", elementwise},
    {"fusion", elementwise},
    {"dropout", elementwise},
    {"fill", elementwise},
};

constexpr OperationKind kKindsDecidedByKernel[] = {host_copy, layout, communication};

struct PrecisionRule {
  std::string_view name_part;
  std::string_view precision;
};

// The first rule applies whose name_part occurs in the name of a kernel, in lower case. cuBLAS and cuDNN name the types
// of factors, result and sum: bf16bf16_bf16f32_f32.
constexpr PrecisionRule kPrecisionRules[] = {
    {"e4m3", "float8"},
    {"e5m2", "float8"},
    {"fp8", "float8"},
    {"tf32", "tf32"},
    {"tfloat32", "tf32"},
    {"s1688gemm", "tf32"},
    {"bf16", "bfloat16"},
    {"bfloat16", "bfloat16"},
    {"f16", "float16"},
    {"fp16", "float16"},
    {"hgemm", "float16"},
    {"h884", "float16"},
    {"h1688", "float16"},
    {"h16816", "float16"},
    {"__half", "float16"},
    {"c10::half", "float16"},
    {"half_t", "float16"},
    {"dgemm", "float64"},
    {"f64f64", "float64"},
    {"double", "float64"},
    {"i8i8", "int8"},
    {"int8", "int8"},
    {"sgemm", "float32"},
    {"f32f32_f32f32_f32", "float32"},
    {"scudnn", "float32"},
    {"ffma_gemm", "float32"},
    {"simt_s", "float32"},
    {"gemmsn_", "float32"},
    {"engine_float", "float32"},
    {"fft2d_", "float32"},
    {"gemv2t_kernel_val<int, int, float", "float32"},
    {"<float", "float32"},
    {", float", "float32"},
};

std::string make_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// "torch.nn.functional.scaled_dot_product_attention" -> "scaleddotproductattention", "AddmmBackward0" -> "addmm".
std::string normalize_operation_name(std::string_view operation) {
  const std::size_t end = operation.find_last_not_of("0123456789");
  constexpr std::string_view kBackwardSuffix = "Backward";
  if (end != std::string_view::npos && operation.substr(0, end + 1).ends_with(kBackwardSuffix))
    operation = operation.substr(0, end + 1 - kBackwardSuffix.size());
  const std::size_t separator = operation.find_last_of(":./");
  if (separator != std::string_view::npos && separator + 1 < operation.size()) operation.remove_prefix(separator + 1);
  std::string name = make_lower_case(operation);
  std::erase(name, '_');
  return name;
}

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

OperationKind find_kind_by_substring(std::span<const OperationKindRule> rules, std::string_view name) {
  const auto matching_rule = std::ranges::find_if(
      rules, [&](const OperationKindRule& rule) { return name.find(rule.name_part) != std::string_view::npos; });
  return matching_rule == rules.end() ? unknown : matching_rule->kind;
}

}  // namespace

OperationKind kind_of_operation(std::string_view operation) {
  const std::string name = normalize_operation_name(operation);
  if (is_one_of(kMatmulOperationNames, name)) return matmul;
  if (is_one_of(kReductionOperationNames, name)) return reduction;
  if (is_one_of(kCopyOperationNames, name)) return copy;
  if (is_one_of(kElementwiseOperationNames, name)) return elementwise;
  return find_kind_by_substring(kOperationKindRules, name);
}

OperationKind kind_of_kernel(std::string_view kernel) {
  return find_kind_by_substring(kKernelKindRules, make_lower_case(kernel));
}

OperationKind kind_of_work(std::string_view operation, std::string_view kernel) {
  const OperationKind by_kernel = kind_of_kernel(kernel);
  if (std::ranges::find(kKindsDecidedByKernel, by_kernel) != std::end(kKindsDecidedByKernel)) return by_kernel;
  const OperationKind kind_by_operation = kind_of_operation(operation);
  return kind_by_operation == unknown ? by_kernel : kind_by_operation;
}

namespace {

// cuBLAS names its kernels for Hopper and later nvjet_tst_128x256 or nvjet_sm90_tst_128x256; the first letter is the
// type of the factors. Products of 32-bit numbers run on tensor cores there.
std::string_view precision_of_nvjet(std::string_view name) {
  constexpr std::string_view kPrefix = "nvjet_";
  const std::size_t prefix_position = name.find(kPrefix);
  if (prefix_position == std::string_view::npos) return {};
  name.remove_prefix(prefix_position + kPrefix.size());
  if (name.starts_with("sm") && name.find('_') != std::string_view::npos) name.remove_prefix(name.find('_') + 1);
  switch (name.empty() ? ' ' : name.front()) {
    case 't':
      return "bfloat16";
    case 'h':
      return "float16";
    case 'q':
      return "float8";
    case 's':
      return "tf32";
    default:
      return {};
  }
}

}  // namespace

std::string_view precision_of_kernel(std::string_view kernel) {
  const std::string name = make_lower_case(kernel);
  if (name.starts_with("cudnn_generated")) return {};  // f16 in these names is any type of 16 bits
  if (const std::string_view precision = precision_of_nvjet(name); !precision.empty()) return precision;
  for (const auto& [name_part, precision] : kPrecisionRules) {
    if (name.find(name_part) != std::string::npos) return precision;
  }
  return {};
}

}  // namespace joulemap::scopes

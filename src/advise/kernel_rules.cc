// SPDX-License-Identifier: Apache-2.0
//
// Rules about kernels that a different program would not need, recognized by their names.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "advise/rules.h"

namespace joulemap::advise {
namespace {

// Names are those of cuBLAS, cuDNN, CUTLASS and PyTorch; parts of the mangled or plain name.
constexpr std::array<std::string_view, 6> kLayoutKernels = {"nchwToNhwc", "nhwcToNchw",           "nchw2nhwc",
                                                            "nhwc2nchw",  "convertTensor_kernel", "nhwcAddPadding"};
// Products of 32-bit numbers on ordinary cores. The same kernels on tensor cores are called tf32.
constexpr std::array<std::string_view, 10> kFullPrecisionKernels = {"sgemm",
                                                                    "f32f32_f32f32_f32",
                                                                    "scudnn",
                                                                    "ffma_gemm",
                                                                    "simt_s",
                                                                    "gemmSN_",
                                                                    "wgrad_alg0_engine",
                                                                    "dgrad_engine",
                                                                    "convolve_common_engine_float",
                                                                    "fft2d_"};
constexpr std::array<std::string_view, 3> kTensorFloatKernels = {"tf32", "s1688gemm", "tfloat32"};
constexpr std::array<std::string_view, 4> kElementwiseKernels = {"elementwise_kernel", "CatArrayBatchedCopy",
                                                                 "reduce_kernel", "RowwiseMoments"};
constexpr std::array<std::string_view, 4> kHostCopies = {"HtoD", "DtoH", "Pageable -> Device", "Device -> Pageable"};

bool contains_any(std::string_view text, std::span<const std::string_view> parts) {
  return std::ranges::any_of(parts,
                             [text](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

struct KernelSum {
  Amount amount;
  double count = 0;
};

KernelSum kernels_named(const Run& run, std::span<const std::string_view> parts,
                        std::span<const std::string_view> except = {}) {
  KernelSum sum;
  for (const ReportRow& row : run.input.by_kernel.rows) {
    if (!is_gpu(row.device) || !is_program_row(row)) continue;
    if (!contains_any(row.name, parts) || contains_any(row.name, except)) continue;
    sum.amount.add(row.energy_j, row.low_j, row.high_j, row.time_s);
    sum.count += static_cast<double>(row.count.value_or(0));
  }
  return sum;
}

std::string share_text(const Run& run, const KernelSum& sum, std::string_view what) {
  std::string text = fmt::format("{} use {:.1f} % of the GPU's energy", what, 100 * run.share(sum.amount.energy_j));
  if (run.steps > 0 && sum.count > 0) text += fmt::format(": {:.0f} in each step", sum.count / run.steps);
  return text;
}

std::optional<Finding> layout(const Run& run) {
  const KernelSum sum = kernels_named(run, kLayoutKernels);
  if (sum.amount.energy_j <= 0) return std::nullopt;
  Finding finding = finding_of("memory_layout", sum.amount, {1.3, 0.5, 2.2});
  finding.title = "cuDNN converts the memory layout of tensors around convolutions";
  finding.change = "model.to(memory_format=torch.channels_last), and the same for its inputs";
  finding.evidence.push_back(share_text(run, sum, "kernels that convert NCHW and NHWC"));
  return finding;
}

std::optional<Finding> full_precision(const Run& run) {
  const KernelSum sum = kernels_named(run, kFullPrecisionKernels, kTensorFloatKernels);
  if (run.share(sum.amount.energy_j) < 0.1) return std::nullopt;
  Finding finding = finding_of("full_precision", sum.amount, {0.75, 0.4, 0.95});
  finding.title = "Matrix products run in 32 bits without tensor cores";
  finding.change = "torch.set_float32_matmul_precision(\"high\"), or torch.autocast(\"cuda\", dtype=torch.bfloat16)";
  finding.evidence.push_back(share_text(run, sum, "such kernels"));
  return finding;
}

std::optional<Finding> half_precision(const Run& run) {
  const KernelSum sum = kernels_named(run, kTensorFloatKernels);
  if (run.share(sum.amount.energy_j) < 0.2) return std::nullopt;
  Finding finding = finding_of("half_precision", sum.amount, {0.45, 0.2, 0.7});
  finding.title = "Matrix products run in TF32";
  finding.change = "torch.autocast(\"cuda\", dtype=torch.bfloat16) around forward and loss; check the accuracy";
  finding.evidence.push_back(share_text(run, sum, "TF32 kernels"));
  return finding;
}

bool has_part(const ReportRow& row, std::string_view part) {
  return !row.path.empty() && row.path.back().find(part) != std::string::npos;
}

// The module in the path of a row: {"train", "forward", module, ...}; empty: none.
std::string module_of(const ReportRow& row) { return row.path.size() > 2 ? row.path[2] : std::string(); }

// Modules that call softmax and multiply matrices themselves, not in a submodule: attention from single operations.
std::set<std::string> attention_modules(const ReportResult& by_op) {
  std::set<std::string> with_softmax;
  std::set<std::string> modules;
  for (const ReportRow& row : by_op.rows) {
    if (is_gpu(row.device) && has_part(row, "softmax") && !has_part(row, "log_softmax"))
      with_softmax.insert(module_of(row));
  }
  for (const ReportRow& row : by_op.rows) {
    const bool is_product = has_part(row, "matmul") || has_part(row, "bmm") || has_part(row, "einsum");
    if (is_gpu(row.device) && is_product && with_softmax.contains(module_of(row))) modules.insert(module_of(row));
  }
  modules.erase("");
  return modules;
}

std::optional<Finding> unfused_attention(const Run& run) {
  const std::set<std::string> modules = attention_modules(run.input.by_op);
  KernelSum sum;
  for (const ReportRow& row : run.input.by_layer.rows) {
    if (!is_gpu(row.device) || !is_program_row(row) || !modules.contains(module_of(row))) continue;
    sum.amount.add(row.energy_j, row.low_j, row.high_j, row.time_s);
  }
  if (run.share(sum.amount.energy_j) < 0.05) return std::nullopt;
  Finding finding = finding_of("unfused_attention", sum.amount, {0.7, 0.25, 0.95});
  finding.title = "Attention is computed by separate operations";
  finding.change = "torch.nn.functional.scaled_dot_product_attention, or attn_implementation=\"sdpa\" in transformers";
  finding.evidence.push_back(share_text(
      run, sum,
      fmt::format("the softmax and products of {} module{}", modules.size(), modules.size() == 1 ? "" : "s")));
  return finding;
}

std::optional<Finding> elementwise(const Run& run) {
  const KernelSum sum = kernels_named(run, kElementwiseKernels);
  if (run.share(sum.amount.energy_j) < 0.15) return std::nullopt;
  Finding finding = finding_of("unfused_elementwise", sum.amount, {0.7, 0.2, 1.2});
  finding.title = "Elementwise operations run as kernels of their own";
  finding.change = "torch.compile(model) fuses them with their neighbours";
  finding.evidence.push_back(share_text(run, sum, "elementwise and reduction kernels"));
  return finding;
}

std::optional<Finding> copies(const Run& run) {
  const KernelSum sum = kernels_named(run, kHostCopies);
  if (sum.amount.energy_j <= 0) return std::nullopt;
  Finding finding = finding_of("host_copies", sum.amount, {0.6, 0.2, 1});
  finding.saves_s = 0.6 * sum.amount.time_s;
  finding.title = "Copies between host and GPU";
  finding.change = "pin_memory=True and tensor.to(device, non_blocking=True); send smaller types (uint8 images)";
  finding.evidence.push_back(share_text(run, sum, "copies"));
  return finding;
}

// An optimizer step of several hundred kernels: the loop over parameters.
std::optional<Finding> optimizer(const Run& run) {
  constexpr double kManyCalls = 40;
  Amount amount;
  double calls = 0;
  for (const ReportRow& row : run.input.by_layer.rows) {
    if (!is_gpu(row.device) || row.path.size() < 2 || row.path[1] != "optimizer") continue;
    amount.add(row.energy_j, row.low_j, row.high_j, row.time_s);
    amount.add(row.waiting_j, row.waiting_low_j, row.waiting_high_j, row.waiting_s.value_or(0));
    calls += static_cast<double>(row.count.value_or(0));
  }
  if (run.steps <= 0 || calls / run.steps < kManyCalls) return std::nullopt;
  Finding finding = finding_of("unfused_optimizer", amount, {0.75, 0.3, 1.1});
  finding.saves_s = 0.75 * amount.time_s;
  finding.title = "The optimizer runs many kernels";
  finding.change = "fused=True (torch.optim.AdamW, Adam, SGD), or foreach=True";
  finding.evidence.push_back(fmt::format("{:.0f} kernels in each step, {:.1f} % of the GPU's energy with their waiting",
                                         calls / run.steps, 100 * run.share(amount.energy_j)));
  return finding;
}

}  // namespace

std::vector<Finding> kernel_findings(const Run& run) {
  std::vector<Finding> findings;
  for (const auto rule :
       {&layout, &full_precision, &half_precision, &unfused_attention, &elementwise, &copies, &optimizer}) {
    if (std::optional<Finding> finding = rule(run)) findings.push_back(*std::move(finding));
  }
  return findings;
}

}  // namespace joulemap::advise

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
constexpr std::array<std::string_view, 6> kLayoutKernelNameParts = {
    "nchwToNhwc", "nhwcToNchw", "nchw2nhwc", "nhwc2nchw", "convertTensor_kernel", "nhwcAddPadding"};
// Products of 32-bit numbers on ordinary cores. The same kernels on tensor cores are called tf32.
constexpr std::array<std::string_view, 10> kFp32KernelNameParts = {"sgemm",
                                                                   "f32f32_f32f32_f32",
                                                                   "scudnn",
                                                                   "ffma_gemm",
                                                                   "simt_s",
                                                                   "gemmSN_",
                                                                   "wgrad_alg0_engine",
                                                                   "dgrad_engine",
                                                                   "convolve_common_engine_float",
                                                                   "fft2d_"};
constexpr std::array<std::string_view, 3> kTf32KernelNameParts = {"tf32", "s1688gemm", "tfloat32"};
constexpr std::array<std::string_view, 4> kElementwiseKernelNameParts = {"elementwise_kernel", "CatArrayBatchedCopy",
                                                                         "reduce_kernel", "RowwiseMoments"};
constexpr std::array<std::string_view, 4> kHostCopyNameParts = {"HtoD", "DtoH", "Pageable -> Device",
                                                                "Device -> Pageable"};

bool contains_any_substring(std::string_view text, std::span<const std::string_view> parts) {
  return std::ranges::any_of(parts,
                             [text](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

struct KernelGroupSum {
  EnergyWithInterval amount;
  double count = 0;
};

KernelGroupSum sum_kernels_named(const RuleContext& run, std::span<const std::string_view> parts,
                                 std::span<const std::string_view> excluded_name_parts = {}) {
  KernelGroupSum sum;
  for (const ReportRow& row : run.reports.kernel_report.rows) {
    if (!is_gpu_device(row.device) || !is_measured_program_row(row)) continue;
    if (!contains_any_substring(row.name, parts) || contains_any_substring(row.name, excluded_name_parts)) continue;
    sum.amount.add(row.energy_j, row.low_j, row.high_j, row.time_s);
    sum.count += static_cast<double>(row.count.value_or(0));
  }
  return sum;
}

std::string describe_kernel_share(const RuleContext& run, const KernelGroupSum& sum, std::string_view kernels_text) {
  std::string text = fmt::format("{} use {:.1f} % of the GPU's energy", kernels_text,
                                 100 * run.fraction_of_run_energy(sum.amount.energy_j));
  if (run.step_count > 0 && sum.count > 0) text += fmt::format(": {:.0f} in each step", sum.count / run.step_count);
  return text;
}

std::optional<Finding> make_layout_conversion_finding(const RuleContext& run) {
  const KernelGroupSum sum = sum_kernels_named(run, kLayoutKernelNameParts);
  if (sum.amount.energy_j <= 0) return std::nullopt;
  Finding finding = make_finding("memory_layout", sum.amount, {1.3, 0.5, 2.2});
  finding.title = "cuDNN converts the memory layout of tensors around convolutions";
  finding.change = "model.to(memory_format=torch.channels_last), and the same for its inputs";
  finding.evidence.push_back(describe_kernel_share(run, sum, "kernels that convert NCHW and NHWC"));
  return finding;
}

std::optional<Finding> make_fp32_kernels_finding(const RuleContext& run) {
  const KernelGroupSum sum = sum_kernels_named(run, kFp32KernelNameParts, kTf32KernelNameParts);
  if (run.fraction_of_run_energy(sum.amount.energy_j) < 0.1) return std::nullopt;
  Finding finding = make_finding("full_precision", sum.amount, {0.75, 0.4, 0.95});
  finding.title = "Matrix products run in 32 bits without tensor cores";
  finding.change = "torch.set_float32_matmul_precision(\"high\"), or torch.autocast(\"cuda\", dtype=torch.bfloat16)";
  finding.evidence.push_back(describe_kernel_share(run, sum, "such kernels"));
  return finding;
}

std::optional<Finding> make_half_precision_finding(const RuleContext& run) {
  const KernelGroupSum sum = sum_kernels_named(run, kTf32KernelNameParts);
  if (run.fraction_of_run_energy(sum.amount.energy_j) < 0.2) return std::nullopt;
  Finding finding = make_finding("half_precision", sum.amount, {0.45, 0.2, 0.7});
  finding.title = "Matrix products run in TF32";
  finding.change = "torch.autocast(\"cuda\", dtype=torch.bfloat16) around forward and loss; check the accuracy";
  finding.evidence.push_back(describe_kernel_share(run, sum, "TF32 kernels"));
  return finding;
}

std::optional<Finding> make_unfused_attention_finding(const RuleContext& run) {
  const std::set<std::string> modules = find_attention_modules(run.reports.operator_report, &is_gpu_device);
  KernelGroupSum sum;
  for (const ReportRow& row : run.reports.layer_report.rows) {
    if (!is_gpu_device(row.device) || !is_measured_program_row(row) || !modules.contains(enclosing_module_name(row)))
      continue;
    sum.amount.add(row.energy_j, row.low_j, row.high_j, row.time_s);
  }
  if (run.fraction_of_run_energy(sum.amount.energy_j) < 0.05) return std::nullopt;
  Finding finding = make_finding("unfused_attention", sum.amount, {0.7, 0.25, 0.95});
  finding.title = "Attention is computed by separate operations";
  finding.change = "torch.nn.functional.scaled_dot_product_attention, or attn_implementation=\"sdpa\" in transformers";
  finding.evidence.push_back(describe_kernel_share(
      run, sum,
      fmt::format("the softmax and products of {} module{}", modules.size(), modules.size() == 1 ? "" : "s")));
  return finding;
}

std::optional<Finding> make_elementwise_kernels_finding(const RuleContext& run) {
  const KernelGroupSum sum = sum_kernels_named(run, kElementwiseKernelNameParts);
  if (run.fraction_of_run_energy(sum.amount.energy_j) < 0.15) return std::nullopt;
  Finding finding = make_finding("unfused_elementwise", sum.amount, {0.7, 0.2, 1.2});
  finding.title = "Elementwise operations run as kernels of their own";
  finding.change = "torch.compile(model) fuses them with their neighbours";
  finding.evidence.push_back(describe_kernel_share(run, sum, "elementwise and reduction kernels"));
  return finding;
}

std::optional<Finding> make_host_copies_finding(const RuleContext& run) {
  const KernelGroupSum sum = sum_kernels_named(run, kHostCopyNameParts);
  if (sum.amount.energy_j <= 0) return std::nullopt;
  Finding finding = make_finding("host_copies", sum.amount, {0.6, 0.2, 1});
  finding.saved_time_s = 0.6 * sum.amount.time_s;
  finding.title = "Copies between host and GPU";
  finding.change = "pin_memory=True and tensor.to(device, non_blocking=True); send smaller types (uint8 images)";
  finding.evidence.push_back(describe_kernel_share(run, sum, "copies"));
  return finding;
}

bool is_optimizer_without_fused_version(std::string_view optimizer) {
  constexpr std::array<std::string_view, 8> kUnfusedOptimizers = {"Adadelta", "Adamax",  "ASGD",  "NAdam",
                                                                  "RAdam",    "RMSprop", "Rprop", "Adafactor"};
  return std::ranges::find(kUnfusedOptimizers, optimizer) != kUnfusedOptimizers.end();
}

// An optimizer step of several hundred kernels: the loop over parameters.
std::optional<Finding> make_unfused_optimizer_finding(const RuleContext& run) {
  constexpr double kMinOptimizerCallsPerStep = 40;
  EnergyWithInterval optimizer_energy;
  bool has_fused_version = false;
  double calls = 0;
  for (const ReportRow& row : run.reports.layer_report.rows) {
    if (!is_gpu_device(row.device) || row.path.size() < 2 || row.path[1] != "optimizer") continue;
    optimizer_energy.add(row.energy_j, row.low_j, row.high_j, row.time_s);
    optimizer_energy.add(row.waiting_j, row.waiting_low_j, row.waiting_high_j, row.waiting_s.value_or(0));
    calls += static_cast<double>(row.count.value_or(0));
    has_fused_version |= row.path.size() < 3 || !is_optimizer_without_fused_version(row.path[2]);
  }
  if (run.step_count <= 0 || calls / run.step_count < kMinOptimizerCallsPerStep) return std::nullopt;
  Finding finding = make_finding("unfused_optimizer", optimizer_energy, {0.75, 0.3, 1.1});
  finding.saved_time_s = 0.75 * optimizer_energy.time_s;
  finding.title = "The optimizer runs many kernels";
  finding.change = has_fused_version ? "fused=True (torch.optim.AdamW, Adam, SGD), or foreach=True" : "foreach=True";
  finding.evidence.push_back(fmt::format("{:.0f} kernels in each step, {:.1f} % of the GPU's energy with their waiting",
                                         calls / run.step_count,
                                         100 * run.fraction_of_run_energy(optimizer_energy.energy_j)));
  return finding;
}

}  // namespace

std::vector<Finding> collect_kernel_findings(const RuleContext& run) {
  std::vector<Finding> findings;
  for (const auto rule : {&make_layout_conversion_finding, &make_fp32_kernels_finding, &make_half_precision_finding,
                          &make_unfused_attention_finding, &make_elementwise_kernels_finding, &make_host_copies_finding,
                          &make_unfused_optimizer_finding}) {
    if (std::optional<Finding> finding = rule(run)) findings.push_back(*std::move(finding));
  }
  return findings;
}

}  // namespace joulemap::advise

// SPDX-License-Identifier: Apache-2.0
//
// Rules for programs without a GPU, from their operations on the CPU. The error of an estimated power is the same for
// all operations of a program and cancels in their shares: ranges contain only what a change may save.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "advise/rules.h"
#include "model/evaluation_rows.h"
#include "scopes/operation_kinds.h"

namespace joulemap::advise {
namespace {

using scopes::OperationKind;

// Below this mean duration, calling an operation costs about as much as its work.
constexpr double kMaxShortOperation_s = 100e-6;
constexpr double kMinSmallOperationEnergyShare = 0.5;
constexpr double kMinAttentionEnergyShare = 0.05;
// Operations per parameter in an optimizer worth fusing. SGD has one or two, Adam seven.
constexpr std::size_t kMinOptimizerOperationKinds = 3;
// Smaller shares of a phase are not named.
constexpr double kMinNamedOperationShare = 0.05;

bool is_row_in_phase(const ReportRow& row, std::string_view phase) {
  return row.path.size() > 1 && row.path[1] == phase;
}
bool is_row_in_mode(const ReportRow& row, std::string_view mode) { return !row.path.empty() && row.path[0] == mode; }

// Rows of the program on the CPU. Compilation is left out: a longer run repeats everything else.
bool is_cpu_program_row(const ReportRow& row) {
  return is_cpu_device(row.device) && is_measured_program_row(row) && !is_row_in_phase(row, "compile");
}

bool is_data_loading_row(const ReportRow& row) {
  return is_row_in_phase(row, "dataloader") || is_row_in_mode(row, "worker");
}
// Of an operation, not of a module's own code.
bool is_operation_row(const ReportRow& row) { return row.path.size() > 3; }
bool is_short_operation(const ReportRow& row) {
  return row.count.value_or(0) > 0 && row.time_s < kMaxShortOperation_s * static_cast<double>(*row.count);
}

using RowPredicate = std::function<bool(const ReportRow&)>;

struct CpuRuleContext {
  const RuleContext& run;
  double judged_rows_energy_j = 0;  // of all judged rows of the operator report

  double energy_share(const RowPredicate& is_included) const {
    double joules = 0;
    for (const ReportRow& row : run.reports.operator_report.rows) {
      if (is_cpu_program_row(row) && is_included(row)) joules += row.energy_j.value_or(0);
    }
    return judged_rows_energy_j > 0 ? joules / judged_rows_energy_j : 0;
  }
};

double sum_cpu_program_energy_j(const ReportResult& result) {
  double joules = 0;
  for (const ReportRow& row : result.rows) {
    if (is_cpu_program_row(row)) joules += row.energy_j.value_or(0);
  }
  return joules;
}

struct OperationShare {
  double share = 0;
  std::string name;
};

// The operations with the most energy and their share of that of all included rows, the costliest first. Empty if no
// operations were recorded.
std::vector<OperationShare> find_costliest_operations(const CpuRuleContext& program, const RowPredicate& is_included,
                                                      const RowPredicate& is_operation) {
  constexpr std::size_t kMaxNamedOperations = 3;
  std::map<std::string, double> energies_j;
  double sum_j = 0;
  for (const ReportRow& row : program.run.reports.operator_report.rows) {
    if (!is_cpu_program_row(row) || !is_included(row) || row.energy_j.value_or(0) <= 0) continue;
    sum_j += *row.energy_j;
    if (is_operation(row)) energies_j[row.path.back()] += *row.energy_j;
  }
  std::vector<OperationShare> operations;
  for (const auto& [name, joules] : energies_j) {
    if (joules >= kMinNamedOperationShare * sum_j) operations.push_back({joules / sum_j, name});
  }
  std::ranges::stable_sort(operations, std::greater<>(), &OperationShare::share);
  if (operations.size() > kMaxNamedOperations) operations.resize(kMaxNamedOperations);
  return operations;
}

// "torch.rand (40 %), torch.stack (20 %)".
std::string format_operation_shares(const std::vector<OperationShare>& operations) {
  std::string text;
  for (const OperationShare& operation : operations)
    text += fmt::format("{}{} ({:.0f} %)", text.empty() ? "" : ", ", operation.name, 100 * operation.share);
  return text;
}

// ", most of it in torch.rand (60 %)"; empty if no operation has a noticeable share.
std::string describe_costliest_operations(const std::vector<OperationShare>& operations) {
  if (operations.empty()) return {};
  double named_share = 0;
  for (const OperationShare& operation : operations) named_share += operation.share;
  return (named_share > 0.5 ? ", most of it in " : ", partly in ") + format_operation_shares(operations);
}

struct CpuRule {
  std::string_view name;
  std::string_view title;
  std::string_view change;
  SavedEnergyFraction saved_fraction;  // measured on a CPU (bench/advise/cpu.py)
};

Finding make_cpu_finding(const CpuRuleContext& program, const CpuRule& rule, double share) {
  EnergyWithInterval affected_energy;
  const double joules = share * program.run.energy_j;
  affected_energy.add(joules, joules, joules, 0);
  Finding finding = make_finding(rule.name, affected_energy, rule.saved_fraction);
  finding.title = rule.title;
  finding.change = rule.change;
  return finding;
}

std::string describe_energy_share(double share) {
  return fmt::format("{:.0f} % of the energy of phases and layers", 100 * share);
}

std::optional<Finding> make_data_loading_finding(const CpuRuleContext& program) {
  const double share = program.energy_share(is_data_loading_row);
  if (share <= 0) return std::nullopt;
  Finding finding = make_cpu_finding(program,
                                     {"data_loading",
                                      "The DataLoader prepares items",
                                      "prepare once what does not change between epochs (keep it in memory or in a "
                                      "file), or a whole batch at a time; num_workers=N makes the run shorter, but "
                                      "the work stays",
                                      {0.9, 0.4, 1.3}},
                                     share);
  // A shorter path is that of the phase itself.
  const auto is_named_row = [](const ReportRow& row) { return row.path.size() > 2; };
  finding.evidence.push_back(describe_energy_share(share) + describe_costliest_operations(find_costliest_operations(
                                                                program, is_data_loading_row, is_named_row)));
  return finding;
}

// Optimizers of PyTorch with a fused version for CPUs. Others have only foreach=True, which on a CPU costs more than it
// saves if the parameters are large.
bool has_fused_version(std::string_view optimizer) {
  constexpr std::array<std::string_view, 4> kFusedOptimizers = {"Adam", "AdamW", "SGD", "Adagrad"};
  return std::ranges::find(kFusedOptimizers, optimizer) != kFusedOptimizers.end();
}

std::optional<Finding> make_optimizer_finding(const CpuRuleContext& program) {
  const auto is_optimizer = [](const ReportRow& row) {
    return is_row_in_phase(row, "optimizer") && row.path.size() > 2 && has_fused_version(row.path[2]);
  };
  std::set<std::string> operations;
  for (const ReportRow& row : program.run.reports.operator_report.rows) {
    if (!is_cpu_program_row(row) || !is_optimizer(row) || !is_operation_row(row)) continue;
    if (row.path.back().find("_fused_") != std::string::npos) return std::nullopt;
    operations.insert(row.path.back());
  }
  const auto is_torch_operation = [](const std::string& name) {
    return name.starts_with("torch.") || name.starts_with("aten::");  // recorded, or of an imported trace
  };
  if (operations.size() < kMinOptimizerOperationKinds || std::ranges::none_of(operations, is_torch_operation))
    return std::nullopt;
  const double share = program.energy_share(is_optimizer);
  Finding finding = make_cpu_finding(program,
                                     {"unfused_optimizer",
                                      "The optimizer reads and writes each parameter several times",
                                      "fused=True (torch.optim.Adam, AdamW, SGD, Adagrad; PyTorch 2.4 or later)",
                                      {0.7, 0.4, 0.9}},
                                     share);
  finding.evidence.push_back(
      fmt::format("{}, in {} operations for each parameter: {}", describe_energy_share(share), operations.size(),
                  format_operation_shares(find_costliest_operations(program, is_optimizer, &is_operation_row))));
  return finding;
}

bool is_elementwise_kind(OperationKind kind) {
  return kind == OperationKind::elementwise || kind == OperationKind::reduction ||
         kind == OperationKind::normalization || kind == OperationKind::softmax;
}

// The products, softmax and elementwise operations of attention, without its projections.
std::optional<Finding> make_attention_finding(const CpuRuleContext& program,
                                              const std::set<std::string>& attention_modules) {
  const auto is_attention = [&](const ReportRow& row) {
    if (!is_operation_row(row) || !attention_modules.contains(enclosing_module_name(row))) return false;
    const std::string& name = row.path.back();
    const bool is_projection = name.find("linear") != std::string::npos || name.find("Addmm") != std::string::npos;
    const OperationKind kind = scopes::kind_of_operation(name);
    return !is_projection && (kind == OperationKind::matmul || is_elementwise_kind(kind));
  };
  const double share = program.energy_share(is_attention);
  if (share < kMinAttentionEnergyShare) return std::nullopt;
  Finding finding = make_cpu_finding(
      program,
      {"unfused_attention",
       "Attention is computed by separate operations",
       "torch.nn.functional.scaled_dot_product_attention, or attn_implementation=\"sdpa\" in transformers",
       {0.5, 0.2, 0.8}},
      share);
  finding.evidence.push_back(fmt::format("{} is in its products, softmax and elementwise operations, in {} module{}",
                                         describe_energy_share(share), attention_modules.size(),
                                         attention_modules.size() == 1 ? "" : "s"));
  return finding;
}

std::optional<Finding> make_small_operations_finding(const CpuRuleContext& program) {
  const auto is_small_operation_row = [](const ReportRow& row) {
    return is_short_operation(row) && !is_data_loading_row(row) && !is_row_in_phase(row, "checkpoint_save");
  };
  const double share = program.energy_share(is_small_operation_row);
  if (share < kMinSmallOperationEnergyShare) return std::nullopt;
  Finding finding = make_cpu_finding(program,
                                     {"small_operations",
                                      "Operations are so short that calling them costs most of the energy",
                                      "a larger batch: the same items in fewer steps (check the learning rate)",
                                      {0.7, 0.3, 1.05}},
                                     share);
  finding.evidence.push_back(fmt::format("{} is in operations of less than {:.0f} us", describe_energy_share(share),
                                         1e6 * kMaxShortOperation_s));
  return finding;
}

std::optional<Finding> make_validation_finding(const CpuRuleContext& program) {
  const auto is_evaluation = [](const ReportRow& row) { return is_row_in_mode(row, "inference"); };
  if (!is_inference_evaluation(program.run.reports.operator_report)) return std::nullopt;
  const double share = program.energy_share(is_evaluation);
  Finding finding = make_cpu_finding(program,
                                     {"evaluation",
                                      "Evaluation during training",
                                      "evaluate half as often or less, or on fewer items",
                                      {0.6, 0.3, 0.95}},
                                     share);
  finding.evidence.push_back(describe_energy_share(share) + " is inference between training steps");
  return finding;
}

std::optional<Finding> make_checkpoint_finding(const CpuRuleContext& program) {
  const double share =
      program.energy_share([](const ReportRow& row) { return is_row_in_phase(row, "checkpoint_save"); });
  Finding finding =
      make_cpu_finding(program, {"checkpoint", "Checkpoints", "save checkpoints less often", {1.2, 0.4, 2.0}}, share);
  finding.evidence.push_back(describe_energy_share(share));
  return finding;
}

}  // namespace

double cpu_program_energy_j(const ReportResult& result) { return sum_cpu_program_energy_j(result); }

std::vector<Finding> collect_cpu_findings(const RuleContext& run) {
  const CpuRuleContext program{run, sum_cpu_program_energy_j(run.reports.operator_report)};
  const std::set<std::string> attention_modules = find_attention_modules(run.reports.operator_report, &is_cpu_device);
  std::vector<Finding> findings;
  for (std::optional<Finding> finding :
       {make_data_loading_finding(program), make_optimizer_finding(program),
        make_attention_finding(program, attention_modules), make_small_operations_finding(program),
        make_validation_finding(program), make_checkpoint_finding(program)}) {
    if (finding) findings.push_back(*std::move(finding));
  }
  return findings;
}

}  // namespace joulemap::advise

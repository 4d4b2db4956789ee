// SPDX-License-Identifier: Apache-2.0
//
// Ledger: attributes the energy of one machine to what ran. The third pass over a recording: each tally gets its part
// of the energy over time, relative to the sums of what ran.
//
// - CPU and memory: while something runs, their energy is attributed by CPU time and by the power of layers, to the
//   scopes of the command and to all other processes ("background"); while nothing runs it is idle (cpu_attribution.h).
//   Basis "regressed", or "cpu-time" where all layers are assumed to have equal power; "estimated" without a counter.
// - GPU: its energy at each moment belongs to what runs then, by the power of kernel classes (gpu_attribution.h). Basis
//   "regressed" or "probed", or "time-share" where most of a row's energy is of classes that could not be separated.
//   Work of other processes on the GPU is one more class, with a row "background".
// - Operations are recorded in sampled steps only. A module's energy is split among its operations in proportion to
//   their time in it. A phase, a region or a module that computes without PyTorch also does other things: its
//   operations get what they used in sampled steps, scaled to all steps, and the rest stays its own. A scope that a
//   framework's own profiler divided (ScopeShare) is split as a module is. An imported trace contains every call.
// - By rank, all work of a process belongs to its rank, in whatever scope.
// - Work that ran only to probe is one row of its own, "probe", on each device.
// - Idle energy of a GPU belongs to what it waited for: scopes of the host (scopes/gpu_wait_attribution.h). It is
//   waiting_j of that scope's row, and an IdleEntry with its cause.
// attributed + idle + unattributed = measured, by construction. Pure; seconds and joules.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/cpu/cpu_attribution.h"
#include "attribution/gpu/gpu_attribution.h"
#include "attribution/ledger/activity_sums.h"
#include "attribution/ledger/cause_evidence.h"
#include "attribution/ledger/machine_energy.h"
#include "attribution/ledger/time_curve.h"
#include "model/activity.h"
#include "model/report_result.h"
#include "model/serving_result.h"

namespace joulemap::attribution {

// `stack`: layers, and below them the GPU work they ran.
enum class RowLevel : std::uint8_t {
  domain,
  phase,
  layer,
  module,  // layers with all their passes together
  op,
  tensor,
  function,
  region,
  kernel,
  step,
  epoch,
  rank,
  stack,
  request,  // requests of a serving engine
  token,    // prefill, decode and waste of a serving engine
  work,     // kernels by mode, phase, module and operation, to compare programs (analysis/operator_work.h)
};
std::optional<RowLevel> parse_row_level(std::string_view name);
std::string_view row_level_name(RowLevel level);

// Sums over the branches of the tree of rows (scopes/path_tree.h).
struct BranchSumOptions {
  bool is_enabled = false;
  std::string path_filter = {};  // only rows that path_matches_filter() finds; empty: all
};

struct LedgerResult {
  std::vector<ReportRow> rows;
  std::vector<ReportRow> groups;
  std::optional<double> attributed_j;
  std::optional<double> idle_j;
  std::optional<double> unattributed_j;
  std::vector<IdleEntry> idle;
  std::optional<ServingResult> serving = {};  // of levels request and token
  Diagnostics diagnostics;
};

// Elements of a path at level work: mode, phase, module, kernel (each may be empty), and the operation where it is
// known.
inline constexpr std::size_t kWorkPathLength = 4;
inline constexpr std::string_view kCpuDevice = "cpu";  // device of the rows of CPUs and memory

class Ledger {
 public:
  Ledger(RowLevel level, const MachineEnergy& energy, ActivitySums& sums);

  void add(std::uint32_t process, const Activity& activity);
  LedgerResult finish(const BranchSumOptions& grouping = {});

 private:
  struct RowAmount {
    std::uint64_t count = 0;
    std::uint64_t sampled_count = 0;
    double time_s = 0;
    double energy_j = 0;
    EnergyByColumn energy_by_column = {};  // J by kernel class of a GPU, or by unknown of CpuPowers
    CauseEvidence cause_evidence = {};
    double waiting_s = 0;  // time in which the idle device waited for this scope
    double waiting_j = 0;
  };
  static void add_scaled_amount(RowAmount& sum, const RowAmount& amount, double share);  // except the counts
  struct RowSum {
    RowAmount amount;
    std::string energy_basis;
    bool has_energy = false;
    bool is_module = false;                                 // a module of a network, not a phase or a region
    std::map<std::string, RowAmount> amounts_by_operation;  // operations or functions, in sampled steps
    bool is_operation_row = false;                          // the entry is such a part, not a layer
    double sampling_relative_sd = 0;                        // relative standard deviation from sampling steps
  };
  using AmountsByPath = std::map<std::vector<std::string>, RowAmount>;  // by path
  using RowKey = std::pair<std::vector<std::string>, std::string>;      // path, device
  void add_scope_energies(std::uint32_t process, const Activity& activity, double fraction_in_span);
  void add_scope_energy(std::uint32_t process, const ScopeTally& tally, const EnergyByColumn& joules);
  struct KernelRate {
    std::string device;
    double power_per_weight = 0;      // J per second of a kernel of weight 1
    double extrapolation_factor = 1;  // in light mode: number of kernels that a traced one extrapolates to
  };
  void add_kernels(std::uint32_t process, const Activity& activity, double fraction_in_span);
  void add_waits(std::uint32_t process, const Activity& activity, double fraction_in_span);
  void add_unexplained_idle(std::uint32_t process, const Activity& activity);
  void charge_idle_energy(std::uint32_t process, const WaitTally& wait, TimeSpan span, const std::string& domain,
                          const IdleAmount& idle);
  std::vector<IdleEntry> make_idle_entries() const;
  void add_kernel(std::uint32_t process, const KernelTally& tally, const KernelRate& kernel);
  void add_to_row(std::vector<std::string> path, const std::string& device, const RowAmount& amount,
                  const ResolvedScope& resolved_scope, std::string_view basis, bool has_energy);
  std::vector<std::string> row_path_of_scope(std::uint32_t process, const ResolvedScope& resolved_scope) const;
  std::vector<std::string> row_path_of_kernel(std::uint32_t process, const KernelTally& tally);
  std::string operation_or_function_name(const ResolvedScope& resolved_scope) const;
  const std::string& kernel_name(std::uint32_t process, std::uint32_t class_id);
  GpuActivityKind kernel_activity_kind(std::uint32_t process, std::uint32_t class_id);
  void split_coarse_scope(const std::vector<std::string>& coarse_path, const AmountsByPath& parts);
  void split_coarse_scopes();
  double steps_per_sampled_step() const;
  double operation_time_fraction(const RowKey& key, const RowSum& entry, double sampled_s, double steps) const;
  void split_row_by_operation(const RowKey& key, const RowSum& entry, std::map<RowKey, RowSum>& split_entries);
  void split_rows_by_operation();
  void separate_operation_rows();
  void merge_function_rows();
  void add_background_rows();
  RowCauses collect_row_causes() const;
  ReportRow make_report_row(const RowKey& key, const RowSum& entry) const;
  std::vector<ReportRow> make_branch_rows(const BranchSumOptions& grouping) const;
  // Whether kernels that were launched in no scope get the row kProgramRowName. Not by region: regions are only those
  // that the program names.
  bool has_program_row() const {
    return row_level_ == RowLevel::phase || row_level_ == RowLevel::layer || row_level_ == RowLevel::module ||
           row_level_ == RowLevel::op || row_level_ == RowLevel::tensor || row_level_ == RowLevel::stack ||
           row_level_ == RowLevel::work;
  }
  bool splits_into_operations() const {
    return row_level_ == RowLevel::op || row_level_ == RowLevel::tensor || row_level_ == RowLevel::work;
  }
  bool has_gpu_wait_times() const { return !activity_sums_.gpu_wait_s().empty(); }
  void add_unattributed_energy(LedgerResult& result) const;

  RowLevel row_level_;
  const MachineEnergy& machine_energy_;
  ActivitySums& activity_sums_;
  CpuAttribution cpu_attribution_;
  GpuAttribution gpu_attribution_;
  std::map<RowKey, RowSum> rows_;
  std::map<std::pair<IdleCause, RowKey>, IdleAmount> idle_amounts_;
  std::map<std::string, IdleAmount> idle_charged_to_host_;      // by domain: what add_unexplained_idle() charged
  std::map<RowKey, std::set<std::uint32_t>> processes_by_row_;  // of each row, at level rank
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> kernel_names_;  // for stacks; by process and class
  std::map<std::pair<std::uint32_t, std::uint32_t>, GpuActivityKind> kernel_activity_kinds_;  // likewise
  // By path of a coarse scope: the parts that it divides into (ScopeShare).
  std::map<std::vector<std::string>, AmountsByPath> shares_of_coarse_scopes_;
  std::map<std::vector<std::string>, AmountsByPath> function_shares_;
};

}  // namespace joulemap::attribution

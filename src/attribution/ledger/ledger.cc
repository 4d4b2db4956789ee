// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/ledger.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "attribution/gpu/lost_kernels.h"
#include "attribution/ledger/wait_cause.h"
#include "base/clock.h"
#include "base/demangle.h"
#include "base/quadrature.h"
#include "model/background_row.h"
#include "scopes/path_tree.h"

namespace joulemap::attribution {
namespace {

// Reports by function: the first name in the path of functions that ran outside of all phases, modules and regions.
constexpr std::string_view kOutsideScopesRowName = "outside";
// By rank: processes without a rank, such as the launcher.
constexpr std::string_view kNoRankRowName = "no rank";
// Relative standard deviation of the energy of one call about the value from its CPU time and the power of its layer.
// For n calls it falls with sqrt(n).
constexpr double kCallEnergyRelativeSd = 0.3;
// Unattributed energy below this fraction of the measured energy is rounding error and is reported as 0.
constexpr double kRelativeRoundingError = 1e-12;

double activity_fraction_in_span(const Activity& activity, TimeSpan span) {
  const std::int64_t from_ns = std::max(activity.begin_ns, span.begin_ns);
  const std::int64_t to_ns = std::min(activity.end_ns, span.end_ns);
  return to_ns > from_ns ? seconds(to_ns - from_ns) / seconds(activity.end_ns - activity.begin_ns) : 0;
}

}  // namespace

Ledger::Ledger(RowLevel level, const MachineEnergy& energy, ActivitySums& sums)
    : row_level_(level),
      machine_energy_(energy),
      activity_sums_(sums),
      cpu_attribution_(energy, sums),
      gpu_attribution_(energy, sums) {}

namespace {

// At the level of modules, a module is the whole path.
std::string module_row_name(const std::string& module) {
  const std::string_view top_module_name = std::string_view(module).substr(0, module.find('.'));
  return is_reserved_row_name(top_module_name) || top_module_name == kTrainModeScopeName ? "module " + module : module;
}

}  // namespace

std::vector<std::string> Ledger::row_path_of_scope(std::uint32_t process, const ResolvedScope& resolved_scope) const {
  if (resolved_scope.is_probe()) return {std::string(kProbeModeScopeName)};  // not part of the run's layers
  if (row_level_ == RowLevel::rank) {
    const std::string& rank = activity_sums_.process_activity(process).rank;
    return {rank.empty() ? std::string(kNoRankRowName) : "rank " + rank};
  }
  if (row_level_ == RowLevel::phase) return resolved_scope.phase_path();
  if (row_level_ == RowLevel::region) return resolved_scope.region_path();
  if (row_level_ == RowLevel::module && resolved_scope.is_in_layer()) return {module_row_name(resolved_scope.module)};
  std::vector<std::string> path = resolved_scope.layer_path();
  if (path.empty() && row_level_ == RowLevel::function) path = {std::string(kOutsideScopesRowName)};
  if (!path.empty() && row_level_ == RowLevel::work)
    path = {resolved_scope.train_or_probe_mode, resolved_scope.phase, resolved_scope.module, {}};
  return path;
}

std::vector<std::string> Ledger::row_path_of_kernel(std::uint32_t process, const KernelTally& tally) {
  ProcessActivity& names = activity_sums_.process_activity(process);
  const ResolvedScope& resolved_scope = names.scopes.resolved_scope(tally.scope);
  if (row_level_ == RowLevel::kernel && !resolved_scope.is_probe()) {
    const auto kernel_class = names.kernel_classes.find(tally.class_id);
    return {kernel_class == names.kernel_classes.end() ? "unknown kernel" : kernel_class->second.name};
  }
  std::vector<std::string> path = row_path_of_scope(process, resolved_scope);
  if (row_level_ == RowLevel::work && path.empty()) path.resize(kWorkPathLength);
  if (path.empty() && has_program_row()) path = {std::string(kProgramRowName)};
  if (path.empty() || resolved_scope.is_probe()) return path;
  if (row_level_ == RowLevel::stack) path.push_back(kernel_name(process, tally.class_id));
  if (row_level_ == RowLevel::work) path.back() = kernel_name(process, tally.class_id);
  return path;
}

// Name of the operation or function below the layer, at levels that show it; else empty.
std::string Ledger::operation_or_function_name(const ResolvedScope& resolved_scope) const {
  if (resolved_scope.is_probe()) return {};
  if (row_level_ == RowLevel::op) return resolved_scope.op;
  if (row_level_ == RowLevel::tensor || row_level_ == RowLevel::work) return resolved_scope.op_with_tensors();
  if (row_level_ != RowLevel::function) return {};
  return resolved_scope.function.empty() ? resolved_scope.op : resolved_scope.function;
}

void Ledger::add_to_row(std::vector<std::string> path, const std::string& device, const RowAmount& amount,
                        const ResolvedScope& resolved_scope, std::string_view basis, bool has_energy) {
  RowSum& entry = rows_[{std::move(path), device}];
  entry.energy_basis = basis;
  entry.has_energy = entry.has_energy || has_energy;
  entry.is_module = entry.is_module || !resolved_scope.module.empty();
  const auto add_amount = [&](RowAmount& sum, bool has_call_count) {
    if (has_call_count) sum.count += amount.count;
    if (has_call_count) sum.sampled_count += amount.sampled_count;
    sum.time_s += amount.time_s;
    sum.energy_j += amount.energy_j;
    sum.energy_by_column.add(amount.energy_by_column);
    sum.cause_evidence.add(amount.cause_evidence);
    sum.waiting_s += amount.waiting_s;
    sum.waiting_j += amount.waiting_j;
  };
  // Entering an operation or a function does not count as entering its layer. A kernel counts for its layer in any
  // case.
  add_amount(entry.amount, (resolved_scope.op.empty() && resolved_scope.function.empty()) || device != kCpuDevice);
  if (const std::string part = operation_or_function_name(resolved_scope); !part.empty())
    add_amount(entry.amounts_by_operation[part], true);
}

void Ledger::add_scope_energy(std::uint32_t process, const ScopeTally& tally, const EnergyByColumn& joules) {
  const ResolvedScope& resolved_scope = activity_sums_.process_activity(process).scopes.resolved_scope(tally.scope);
  cpu_attribution_.add_to_total(joules);
  std::vector<std::string> path = row_path_of_scope(process, resolved_scope);
  if (path.empty()) return;
  if (row_level_ == RowLevel::rank) processes_by_row_[{path, std::string(kCpuDevice)}].insert(process);
  const RowAmount amount{tally.count, tally.sampled_count,       seconds(tally.wall_ns), joules.total_j(),
                         joules,      make_cause_evidence(tally)};
  add_to_row(std::move(path), std::string(kCpuDevice), amount, resolved_scope, kCpuTimeBasis,
             machine_energy_.cpu_energy_j.has_value());
}

// `fraction_in_span`: the share of the activity within the command's time; work outside of it gets no energy.
void Ledger::add_scope_energies(std::uint32_t process, const Activity& activity, double fraction_in_span) {
  CpuAttribution::Rates rates = cpu_attribution_.mean_rates_between(activity.begin_ns, activity.end_ns);
  rates.measured_j_per_modelled_j *= fraction_in_span;
  rates.idle_j_per_busy_wall_s *= fraction_in_span;
  const std::vector<double> busy_time_s = busy_wall_s(activity);
  for (std::size_t i = 0; i < busy_time_s.size(); ++i) {
    const ScopeTally& tally = activity.scope_tallies[i];
    add_scope_energy(process, tally, cpu_attribution_.attribute_tally(process, tally, busy_time_s[i], rates));
  }
}

// The demangled name; in a stack it is the innermost of several names.
const std::string& Ledger::kernel_name(std::uint32_t process, std::uint32_t class_id) {
  const auto [name, is_new] = kernel_names_.try_emplace({process, class_id});
  if (!is_new) return name->second;
  const auto& classes = activity_sums_.process_activity(process).kernel_classes;
  const auto kernel_class = classes.find(class_id);
  return name->second = kernel_class == classes.end() ? "unknown kernel" : demangle(kernel_class->second.name);
}

// A kernel without a description counts as compute.
GpuActivityKind Ledger::kernel_activity_kind(std::uint32_t process, std::uint32_t class_id) {
  const auto [kind, is_new] = kernel_activity_kinds_.try_emplace({process, class_id}, GpuActivityKind::compute);
  const auto& classes = activity_sums_.process_activity(process).kernel_classes;
  const auto kernel_class = classes.find(class_id);
  if (is_new && kernel_class != classes.end()) kind->second = classify_gpu_activity(kernel_class->second);
  return kind->second;
}

void Ledger::add_kernel(std::uint32_t process, const KernelTally& tally, const KernelRate& kernel) {
  const auto& [device, rate, extrapolation_factor] = kernel;
  ProcessActivity& names = activity_sums_.process_activity(process);
  const ResolvedScope& resolved_scope = names.scopes.resolved_scope(tally.scope);
  const double time_s = seconds(tally.time_ns) * extrapolation_factor;
  const auto count = static_cast<std::uint64_t>(std::llround(static_cast<double>(tally.count) * extrapolation_factor));
  const bool has_energy = machine_energy_.gpus.contains(device);
  const std::string domain_name = machine_energy_.gpu_domain_name(device);
  std::vector<std::string> path = row_path_of_kernel(process, tally);
  const double length_ns =
      static_cast<double>(tally.time_ns) / static_cast<double>(std::max<std::uint64_t>(tally.count, 1));
  const GpuAttribution::KernelWeight weight =
      gpu_attribution_.kernel_weight(device, process, tally.class_id, length_ns);
  RowAmount amount{count, 0, time_s, time_s * rate * weight.weight};
  amount.cause_evidence =
      make_cause_evidence(kernel_activity_kind(process, tally.class_id), time_s, static_cast<double>(count));
  if (weight.is_power_known) {
    amount.energy_by_column.add(weight.column, amount.energy_j);
    gpu_attribution_.add_to_total(domain_name, amount.energy_by_column);
  }
  if (path.empty()) return;
  if (row_level_ == RowLevel::rank) processes_by_row_[{path, domain_name}].insert(process);
  add_to_row(std::move(path), domain_name, amount, resolved_scope, kTimeShareBasis, has_energy);
}

void Ledger::add_kernels(std::uint32_t process, const Activity& activity, double fraction_in_span) {
  ProcessActivity& names = activity_sums_.process_activity(process);
  std::map<std::tuple<std::uint32_t, bool, bool>, KernelRate> rates;  // by queue, is_one_time, is lost
  for (const KernelTally& tally : activity.kernel_tallies) {
    const bool is_one_time = names.scopes.resolved_scope(tally.scope).is_one_time();
    const auto [kernel_rate, is_new] =
        rates.try_emplace({tally.queue, is_one_time, tally.class_id == kLostKernelClassId});
    if (is_new) {
      const Extrapolation extrapolation =
          names.extrapolate({activity.begin_ns, activity.end_ns}, is_one_time, tally.class_id);
      const std::string device = names.device_of_queue(tally.queue);
      double rate = 0;
      for_each_span_outside_gaps(names.idle_gaps_of(device), extrapolation.span, [&](TimeSpan part, double share) {
        rate += share * gpu_attribution_.power_per_weight(device, part.begin_ns, part.end_ns);
      });
      kernel_rate->second = {device, fraction_in_span * rate, extrapolation.kernel_weight};
    }
    add_kernel(process, tally, kernel_rate->second);
  }
}

void Ledger::add(std::uint32_t process, const Activity& activity) {
  const double fraction_in_span = activity_fraction_in_span(activity, activity_sums_.captured_cpu_s().span());
  if (row_level_ != RowLevel::kernel) add_scope_energies(process, activity, fraction_in_span);
  ScopePaths& scopes = activity_sums_.process_activity(process).scopes;
  for (const ScopeShare& share : activity.shares) {
    if (row_level_ == RowLevel::rank) break;  // all of it belongs to one rank
    const std::vector<std::string> coarse_scope = row_path_of_scope(process, scopes.resolved_scope(share.coarse_scope));
    const ResolvedScope& fine_scope = scopes.resolved_scope(share.scope);
    std::vector<std::string> path = row_path_of_scope(process, fine_scope);
    if (const std::string part = operation_or_function_name(fine_scope); !part.empty()) path.push_back(part);
    const bool is_function = !fine_scope.function.empty();
    RowAmount& sum = (is_function ? function_shares_ : shares_of_coarse_scopes_)[coarse_scope][std::move(path)];
    // A count of stack samples, or of operations in a layer, is no count of calls.
    if (is_function) sum.sampled_count += share.count;
    if (!is_function && !operation_or_function_name(fine_scope).empty()) sum.count += share.count;
    sum.time_s += seconds(share.time_ns);
  }
  add_kernels(process, activity, fraction_in_span);
  add_waits(process, activity, fraction_in_span);
  add_unexplained_idle(process, activity);
}

void Ledger::add_background_rows() {
  for (const GpuAttribution::CoTenantEnergy& co_tenants : gpu_attribution_.co_tenant_energies()) {
    gpu_attribution_.add_to_total(co_tenants.domain, co_tenants.energy_by_column);
    add_to_row({std::string(kBackgroundRowName)}, co_tenants.domain,
               {0, 0, co_tenants.time_s, co_tenants.energy_j, co_tenants.energy_by_column}, {}, kTimeShareBasis, true);
  }
  if (row_level_ == RowLevel::kernel || cpu_attribution_.background_s() <= 0) return;
  const EnergyByColumn& joules = cpu_attribution_.background_energy();
  add_to_row({std::string(kBackgroundRowName)}, std::string(kCpuDevice),
             {0, 0, cpu_attribution_.background_s(), joules.total_j(), joules}, {}, kCpuTimeBasis,
             machine_energy_.cpu_energy_j.has_value());
}

// Without host evidence if a GPU is measured but no kernels were recorded, because threads may have launched anything,
// and for imported traces, which contain no CPU time.
RowCauses Ledger::collect_row_causes() const {
  const bool has_kernels = machine_energy_.gpus.empty() || !activity_sums_.gpu_busy_s().empty();
  const bool has_cpu_time = machine_energy_.has_sampled_operations;
  const bool has_function_names = splits_into_operations() || row_level_ == RowLevel::function;
  RowCauses causes(has_kernels && has_cpu_time, has_function_names);
  for (const auto& [key, entry] : rows_) causes.add(key.first, entry.amount.cause_evidence);
  causes.finish();
  return causes;
}

ReportRow Ledger::make_report_row(const RowKey& key, const RowSum& entry) const {
  ReportRow row;
  row.path = key.first;
  row.name = row.path.back();
  row.display_name = row_level_ == RowLevel::kernel ? demangle(row.name) : row.name;
  row.device = key.second;
  row.count = entry.amount.count;
  row.time_s = entry.amount.time_s;
  if (!entry.has_energy) return row;
  row.basis = entry.energy_basis;
  row.energy_j = entry.amount.energy_j;
  if (row.device != kCpuDevice && has_gpu_wait_times()) {
    row.waiting_s = entry.amount.waiting_s;
    row.waiting_j = entry.amount.waiting_j;
    if (const auto interval = gpu_attribution_.idle_energy_interval(row.device, entry.amount.waiting_j))
      std::tie(row.waiting_low_j, row.waiting_high_j) = *interval;
  }
  if (row.time_s > 0) row.power_w = entry.amount.energy_j / row.time_s;
  if (row.basis == kTimeShareBasis) gpu_attribution_.fill_in_energy_details(row, entry.amount.energy_by_column);
  if (row.basis == kCpuTimeBasis) {
    const double calls =
        entry.amount.count > 0 ? kCallEnergyRelativeSd / std::sqrt(static_cast<double>(entry.amount.count)) : 0;
    cpu_attribution_.fill_in_energy_details(row, entry.amount.energy_by_column,
                                            add_in_quadrature(calls, entry.sampling_relative_sd));
  }
  return row;
}

// Computes the unattributed energy and each row's share of the attributed energy. Sets nothing if no energy is known.
void Ledger::add_unattributed_energy(LedgerResult& result) const {
  double measured_j = machine_energy_.cpu_energy_j ? machine_energy_.cpu_energy_j->total() : 0;
  std::map<std::string, double> gpus;  // each GPU is listed under two names
  for (const auto& [device, gpu] : machine_energy_.gpus) gpus[gpu.domain_name] = gpu.energy_j.total();
  for (const auto& [domain, joules] : gpus) measured_j += joules;
  if (!machine_energy_.cpu_energy_j && gpus.empty()) return;
  double attributed_j = 0;
  for (const ReportRow& row : result.rows) attributed_j += row.energy_j.value_or(0);
  const bool counts_only_gpus = row_level_ == RowLevel::kernel;
  result.attributed_j = attributed_j;
  result.idle_j = (counts_only_gpus ? 0 : cpu_attribution_.idle_j()) + gpu_attribution_.idle_j();
  const double unattributed_energy_j = measured_j - attributed_j - *result.idle_j;
  result.unattributed_j =
      std::abs(unattributed_energy_j) < kRelativeRoundingError * measured_j ? 0 : unattributed_energy_j;
  result.idle = make_idle_entries();
  for (ReportRow& row : result.rows) {
    if (row.energy_j && attributed_j > 0) row.share = *row.energy_j / attributed_j;
  }
}

LedgerResult Ledger::finish(const BranchSumOptions& grouping) {
  if (splits_into_operations() || row_level_ == RowLevel::function) split_rows_by_operation();
  split_coarse_scopes();
  if (row_level_ == RowLevel::function) merge_function_rows();
  add_background_rows();
  LedgerResult result;
  const RowCauses causes = this->collect_row_causes();
  for (const auto& [key, entry] : rows_) {
    const CauseEvidence& evidence = entry.amount.cause_evidence;
    result.rows.push_back(make_report_row(key, entry));
    result.rows.back().cause =
        key.second == kCpuDevice ? causes.cpu_cause(key.first, evidence) : causes.gpu_cause(evidence);
    // Scopes and kernels of a rank are of many kinds: its count is the number of its processes.
    if (const auto row_processes = processes_by_row_.find(key); row_processes != processes_by_row_.end())
      result.rows.back().count = row_processes->second.size();
  }
  std::sort(result.rows.begin(), result.rows.end(), [](const ReportRow& a, const ReportRow& b) {
    return std::pair(a.energy_j.value_or(0), a.time_s) > std::pair(b.energy_j.value_or(0), b.time_s);
  });
  for (const auto& [device, busy_s] : activity_sums_.gpu_busy_s()) {
    if (machine_energy_.gpus.contains(device)) continue;
    const auto uncounted_gpu = machine_energy_.uncounted_gpus.find(device);
    if (uncounted_gpu != machine_energy_.uncounted_gpus.end() && uncounted_gpu->second.is_excluded) continue;
    result.diagnostics.add(
        {"gpu_not_measured", 1,
         "kernels ran on " + machine_energy_.gpu_domain_name(device) + ", whose energy was not recorded",
         "run joulemap doctor to see why"});
  }
  if (grouping.is_enabled) result.groups = make_branch_rows(grouping);
  gpu_attribution_.add_attribution_basis_diagnostics(result.diagnostics);
  add_unattributed_energy(result);
  return result;
}

// The part of the Ledger that splits the energy of a layer among its operations and functions.

namespace {

constexpr std::array<std::pair<std::string_view, RowLevel>, 16> kRowLevelNames = {{{"domain", RowLevel::domain},
                                                                                   {"phase", RowLevel::phase},
                                                                                   {"layer", RowLevel::layer},
                                                                                   {"module", RowLevel::module},
                                                                                   {"op", RowLevel::op},
                                                                                   {"tensor", RowLevel::tensor},
                                                                                   {"function", RowLevel::function},
                                                                                   {"region", RowLevel::region},
                                                                                   {"kernel", RowLevel::kernel},
                                                                                   {"step", RowLevel::step},
                                                                                   {"epoch", RowLevel::epoch},
                                                                                   {"rank", RowLevel::rank},
                                                                                   {"stack", RowLevel::stack},
                                                                                   {"request", RowLevel::request},
                                                                                   {"token", RowLevel::token},
                                                                                   {"operator", RowLevel::work}}};

constexpr double kTimeResolution_s = 1e-9;  // resolution of recorded times; less is rounding error of sums
constexpr double kEnergyResolution_j = 1e-12;
// If its operations take at least this share of a module's time, they get all of it: calling a module that only calls
// an operation takes up to twice as long as the operation. Below it, the module computes without PyTorch.
constexpr double kMinOperationTimeFraction = 0.25;
// Relative standard deviation, from step to step, of the shares of operations within their layer.
constexpr double kStepShareRelativeSd = 0.2;

double relative_sampling_error(double single_sample_sd, std::uint64_t samples) {
  return single_sample_sd / std::sqrt(static_cast<double>(std::max(samples, std::uint64_t{1})));
}

}  // namespace

std::optional<RowLevel> parse_row_level(std::string_view name) {
  for (const auto& [text, level] : kRowLevelNames) {
    if (text == name) return level;
  }
  return std::nullopt;
}

std::string_view row_level_name(RowLevel level) { return kRowLevelNames[static_cast<std::size_t>(level)].first; }

void Ledger::split_coarse_scope(const std::vector<std::string>& coarse_path, const AmountsByPath& parts) {
  double parts_s = 0;
  for (const auto& [path, part_amount] : parts) parts_s += part_amount.time_s;
  if (parts_s <= 0) return;
  std::vector<RowKey> keys;
  for (const auto& [key, entry] : rows_) {
    if (key.first == coarse_path && !entry.is_operation_row) keys.push_back(key);
  }
  for (const RowKey& key : keys) {
    const RowSum coarse_row = rows_.extract(key).mapped();
    for (const auto& [path, part_amount] : parts) {
      const double share = part_amount.time_s / parts_s;
      const double calls = static_cast<double>(part_amount.count) * coarse_row.amount.time_s / parts_s;
      RowAmount part{static_cast<std::uint64_t>(std::llround(calls)), 0, coarse_row.amount.time_s * share,
                     coarse_row.amount.energy_j * share};
      part.energy_by_column.add(coarse_row.amount.energy_by_column, share);
      part.waiting_s = coarse_row.amount.waiting_s * share;
      part.waiting_j = coarse_row.amount.waiting_j * share;
      const bool is_stack_sampled = part_amount.sampled_count > 0;  // a function known from stack samples
      const CauseEvidence& evidence = coarse_row.amount.cause_evidence;
      part.cause_evidence.add(is_stack_sampled ? evidence.with_unclassified_cpu_time() : evidence, share);
      const std::vector<std::string>& fine_path = path.empty() ? coarse_path : path;
      add_to_row(fine_path, key.second, part, {}, coarse_row.energy_basis, coarse_row.has_energy);
      RowSum& row = rows_[{fine_path, key.second}];
      row.is_operation_row = true;
      row.sampling_relative_sd = relative_sampling_error(
          part_amount.sampled_count > 0 ? std::sqrt(1 - share) : kStepShareRelativeSd * (1 - share),
          std::max(part_amount.sampled_count, std::uint64_t{1}));
    }
  }
}

// Recorded operations take precedence over functions from stack samples.
void Ledger::split_coarse_scopes() {
  for (const auto& [coarse_path, parts] : shares_of_coarse_scopes_) split_coarse_scope(coarse_path, parts);
  if (row_level_ != RowLevel::function) return;
  for (const auto& [coarse_path, parts] : function_shares_) split_coarse_scope(coarse_path, parts);
}

// For traces that contain every call: an operation has its own time, and the rest of the layer's time stays with the
// layer.
void Ledger::separate_operation_rows() {
  std::map<RowKey, RowSum> split_entries;
  for (auto& [key, entry] : rows_) {
    RowSum remaining_row = std::move(entry);
    for (const auto& [part, operation_amount] : remaining_row.amounts_by_operation) {
      RowKey operation_key = key;
      operation_key.first.push_back(part);
      split_entries[operation_key] = {
          operation_amount, remaining_row.energy_basis, remaining_row.has_energy, remaining_row.is_module, {}, true, 0};
      remaining_row.amount.time_s -= operation_amount.time_s;
      remaining_row.amount.energy_j -= operation_amount.energy_j;
      remaining_row.amount.energy_by_column.add(operation_amount.energy_by_column, -1);
      remaining_row.amount.cause_evidence.add(operation_amount.cause_evidence, -1);
      remaining_row.amount.waiting_s -= operation_amount.waiting_s;
      remaining_row.amount.waiting_j -= operation_amount.waiting_j;
      if (key.second != kCpuDevice)
        remaining_row.amount.count -= operation_amount.count;  // each kernel belongs to one operation
    }
    if (remaining_row.amounts_by_operation.empty() || remaining_row.amount.time_s > kTimeResolution_s)
      split_entries.emplace(key, std::move(remaining_row));
  }
  rows_ = std::move(split_entries);
}

void Ledger::add_scaled_amount(RowAmount& sum, const RowAmount& amount, double share) {
  const RowAmount original_amount = amount;  // `amount` may alias `total_j`
  sum.time_s += share * original_amount.time_s;
  sum.energy_j += share * original_amount.energy_j;
  sum.energy_by_column.add(original_amount.energy_by_column, share);
  sum.cause_evidence.add(original_amount.cause_evidence, share);
  sum.waiting_s += share * original_amount.waiting_s;
  sum.waiting_j += share * original_amount.waiting_j;
}

// Number of steps per sampled step, by how often layers were entered; 0 if no step was sampled.
double Ledger::steps_per_sampled_step() const {
  double call_count = 0;
  double sampled_call_count = 0;
  for (const auto& [key, entry] : rows_) {
    if (key.second != kCpuDevice || entry.amount.sampled_count == 0) continue;
    call_count += static_cast<double>(entry.amount.count);
    sampled_call_count += static_cast<double>(entry.amount.sampled_count);
  }
  return sampled_call_count > 0 ? call_count / sampled_call_count : 0;
}

void Ledger::split_row_by_operation(const RowKey& key, const RowSum& entry, std::map<RowKey, RowSum>& split_entries) {
  double sampled_s = 0;
  double sampled_operations_j = 0;
  for (const auto& [part, operation_amount] : entry.amounts_by_operation) {
    sampled_s += operation_amount.time_s;
    sampled_operations_j += operation_amount.energy_j;
  }
  for (const auto& [part, operation_amount] : entry.amounts_by_operation) {
    const double share = operation_amount.time_s / sampled_s;
    // Calls are counted exactly in sampled steps; the ratio of all entries of the layer to sampled entries scales them.
    const double steps = entry.amount.sampled_count > 0
                             ? static_cast<double>(entry.amount.count) / static_cast<double>(entry.amount.sampled_count)
                             : entry.amount.time_s / sampled_s;
    RowKey operation_key = key;
    operation_key.first.push_back(part);
    RowSum& row = split_entries[operation_key];
    row.energy_basis = entry.energy_basis;
    row.has_energy = entry.has_energy;
    row.is_operation_row = true;
    row.amount = {static_cast<std::uint64_t>(std::llround(static_cast<double>(operation_amount.count) * steps)), 0,
                  entry.amount.time_s * share, entry.amount.energy_j * share};
    row.amount.cause_evidence.add(operation_amount.cause_evidence, entry.amount.time_s / sampled_s);
    row.amount.waiting_s = entry.amount.waiting_s * share;
    row.amount.waiting_j = entry.amount.waiting_j * share;
    if (sampled_operations_j <= 0) {
      row.amount.energy_by_column.add(entry.amount.energy_by_column, share);
      continue;
    }
    // The energy of each operation in sampled steps is known, not only its time.
    const double energy_share = operation_amount.energy_j / sampled_operations_j;
    row.amount.energy_j = entry.amount.energy_j * energy_share;
    if (key.second == kCpuDevice) {
      row.amount.energy_by_column.add(entry.amount.energy_by_column, energy_share);
      row.sampling_relative_sd =
          relative_sampling_error(kStepShareRelativeSd * (1 - energy_share), entry.amount.sampled_count);
    } else {
      row.amount.energy_by_column.add(operation_amount.energy_by_column, entry.amount.energy_j / sampled_operations_j);
    }
  }
}

// Share of an entry's time that belongs to its operations. A module does little else, unless its operations explain
// only a small part of its time: then it computes without PyTorch. A phase or a region waits, and does other things
// before the first step.
double Ledger::operation_time_fraction(const RowKey& key, const RowSum& entry, double sampled_s, double steps) const {
  if (key.second != kCpuDevice || steps <= 0 || (entry.is_module && entry.amount.sampled_count == 0)) return 1;
  const double own_steps = entry.amount.sampled_count > 0 ? static_cast<double>(entry.amount.count) /
                                                                static_cast<double>(entry.amount.sampled_count)
                                                          : steps;
  const double share = std::min(1.0, own_steps * sampled_s / entry.amount.time_s);
  return entry.is_module && share >= kMinOperationTimeFraction ? 1 : share;
}

void Ledger::split_rows_by_operation() {
  if (!machine_energy_.has_sampled_operations) return separate_operation_rows();
  const double steps = steps_per_sampled_step();
  std::map<RowKey, RowSum> split_entries;
  for (auto& [key, entry] : rows_) {
    double sampled_s = 0;
    for (const auto& [part, operation_amount] : entry.amounts_by_operation) sampled_s += operation_amount.time_s;
    if (sampled_s <= 0) {
      split_entries.emplace(key, std::move(entry));
      continue;
    }
    const double operation_fraction = operation_time_fraction(key, entry, sampled_s, steps);
    RowSum operations_row = entry;
    operations_row.amount = {entry.amount.count, entry.amount.sampled_count, 0, 0, {}, {}};
    add_scaled_amount(operations_row.amount, entry.amount, operation_fraction);
    split_row_by_operation(key, operations_row, split_entries);
    if (operation_fraction == 1) continue;
    entry.amounts_by_operation.clear();
    add_scaled_amount(entry.amount, entry.amount, -operation_fraction);
    split_entries.emplace(key, std::move(entry));
  }
  rows_ = std::move(split_entries);
}

// Merges the rows of a function in all layers. Drops entries that are no functions: layers without a sampled step.
void Ledger::merge_function_rows() {
  std::map<RowKey, RowSum> functions;
  for (auto& [key, entry] : rows_) {
    if (!entry.is_operation_row && key.first.front() != kProbeModeScopeName) continue;
    RowSum& sum = functions[{{key.first.back()}, key.second}];
    sum.energy_basis = entry.energy_basis;
    sum.has_energy = entry.has_energy;
    sum.amount.count += entry.amount.count;
    sum.amount.time_s += entry.amount.time_s;
    sum.amount.energy_j += entry.amount.energy_j;
    sum.amount.energy_by_column.add(entry.amount.energy_by_column);
    sum.amount.cause_evidence.add(entry.amount.cause_evidence);
    sum.sampling_relative_sd =
        add_in_quadrature(sum.sampling_relative_sd,
                          entry.sampling_relative_sd * entry.amount.energy_j);  // in J until all are added
  }
  for (auto& [key, entry] : functions)
    entry.sampling_relative_sd /= std::max(entry.amount.energy_j, kEnergyResolution_j);
  rows_ = std::move(functions);
}

// The part of the Ledger that sums rows along the branches of their tree. It sums joules by class and derives the
// interval from those, as for a single row. In each replicate of the fit, the errors of all rows of a branch are
// correlated: some add up, others cancel (one layer's gain is its neighbour's loss). Adding half widths would make
// intervals too wide, adding them in quadrature too narrow.

std::vector<ReportRow> Ledger::make_branch_rows(const BranchSumOptions& grouping) const {
  struct BranchSum {
    RowSum row_sum;
    double variance_j2 = 0;  // from sampling of steps; independent between rows
  };
  std::map<RowKey, BranchSum> groups;
  for (const auto& [key, entry] : rows_) {
    if (!scopes::path_matches_filter(key.first, key.second, grouping.path_filter)) continue;
    std::vector<std::string> branch = scopes::tree_path(key.first, row_level_name(row_level_));
    const std::size_t depth = branch.size();
    for (std::size_t length = 0; length <= depth; ++length) {
      branch.resize(depth - length);
      BranchSum& group = groups[{branch, key.second}];
      group.row_sum.energy_basis =
          entry.energy_basis;  // of the device; make_report_row() refines it by the energy by class
      group.row_sum.has_energy = group.row_sum.has_energy || entry.has_energy;
      group.row_sum.amount.count += entry.amount.count;
      // CPU time of other processes is not time of the run.
      const bool is_other_cpu_time = key.second == kCpuDevice && key.first.front() == kBackgroundRowName;
      if (!is_other_cpu_time || length == 0) group.row_sum.amount.time_s += entry.amount.time_s;
      group.row_sum.amount.energy_j += entry.amount.energy_j;
      group.row_sum.amount.waiting_s += entry.amount.waiting_s;
      group.row_sum.amount.waiting_j += entry.amount.waiting_j;
      group.row_sum.amount.energy_by_column.add(entry.amount.energy_by_column);
      const double spread_j = entry.sampling_relative_sd * entry.amount.energy_j;
      group.variance_j2 += spread_j * spread_j;
    }
  }
  std::vector<ReportRow> rows;
  for (auto& [key, group] : groups) {
    if (group.row_sum.amount.energy_j > 0)
      group.row_sum.sampling_relative_sd = std::sqrt(group.variance_j2) / group.row_sum.amount.energy_j;
    if (key.first.empty()) {
      rows.push_back(make_report_row({{key.second}, key.second}, group.row_sum));
      rows.back().path.clear();
    } else {
      rows.push_back(make_report_row(key, group.row_sum));
    }
  }
  return rows;
}

// The part of the Ledger that charges the energy of idle devices to what they waited for.

namespace {

bool has_queue_on_device(const ProcessActivity& names, const std::string& device) {
  return std::ranges::any_of(names.kernel_queues,
                             [&](const auto& queue) { return names.device_of_queue(queue.first) == device; });
}

}  // namespace

void Ledger::add_waits(std::uint32_t process, const Activity& activity, double fraction_in_span) {
  ProcessActivity& names = activity_sums_.process_activity(process);
  const double length_s = seconds(activity.end_ns - activity.begin_ns);
  const double program_fraction_of_time =
      length_s > 0 ? 1 - machine_energy_.time_outside_program_s(activity.begin_ns, activity.end_ns) / length_s : 1;
  for (const WaitTally& wait : activity.waits) {
    const ResolvedScope& scope = names.scopes.resolved_scope(wait.scope);
    const std::string device = names.device_of_queue(wait.queue);
    const auto gpu = machine_energy_.gpus.find(device);
    if (gpu == machine_energy_.gpus.end()) continue;
    const Extrapolation extrapolation =
        activity_sums_.extrapolate_wait(names, device, {activity.begin_ns, activity.end_ns}, scope.is_one_time());
    const double time_s = seconds(wait.time_ns) * extrapolation.kernel_weight;
    const auto rate =
        gpu_attribution_.idle_per_waiting_second(device, extrapolation.span.begin_ns, extrapolation.span.end_ns);
    const double idle_s = fraction_in_span * time_s * rate.idle_s_per_waiting_s;
    const double idle_j = fraction_in_span * time_s * rate.watts;
    const double program_fraction = scope.is_probe() ? 0 : program_fraction_of_time;
    charge_idle_energy(process, wait, {activity.begin_ns, activity.end_ns}, gpu->second.domain_name,
                       {idle_s, idle_j, program_fraction * idle_s, program_fraction * idle_j});
  }
}

void Ledger::charge_idle_energy(std::uint32_t process, const WaitTally& wait, TimeSpan span, const std::string& domain,
                                const IdleAmount& idle) {
  const ResolvedScope& scope = activity_sums_.process_activity(process).scopes.resolved_scope(wait.scope);
  // Rows of kernels and functions are not scopes.
  const bool has_scope_row = row_level_ != RowLevel::kernel && row_level_ != RowLevel::function;
  std::vector<std::string> path = has_scope_row ? row_path_of_scope(process, scope) : std::vector<std::string>();
  idle_amounts_[{idle_cause_of_wait(activity_sums_.process_activity(process), wait, span), {path, domain}}].add(idle);
  if (path.empty()) return;
  RowAmount amount;
  amount.waiting_s = idle.time_s;
  amount.waiting_j = idle.energy_j;
  add_to_row(std::move(path), domain, amount, scope, kTimeShareBasis, true);
}

// In untraced steps of light mode the GPU may be idle for longer than in the traced steps that extrapolate to them, for
// instance because a batch came late. Splits that idle energy by the time that the host spent in each scope, which is
// recorded for all steps.
void Ledger::add_unexplained_idle(std::uint32_t process, const Activity& activity) {
  const ProcessActivity& names = activity_sums_.process_activity(process);
  const double length_s = seconds(activity.end_ns - activity.begin_ns);
  if (!has_gpu_wait_times() || !names.is_partly_traced() || activity.scope_tallies.empty() || length_s <= 0) return;
  std::set<std::string> devices;
  for (const auto& [id, queue] : names.kernel_queues) devices.insert(names.device_of_queue(id));
  double scope_time_s = 0;
  for (const ScopeTally& tally : activity.scope_tallies) {
    if (tally.scope != 0) scope_time_s += seconds(tally.wall_ns);
  }
  const double total_time_s = std::max(scope_time_s, length_s);  // without threads in the root scope
  for (const std::string& device : devices) {
    const auto gpu = machine_energy_.gpus.find(device);
    const IdleAmount total_idle = gpu_attribution_.unexplained_idle_between(device, activity.begin_ns, activity.end_ns);
    if (gpu == machine_energy_.gpus.end() || total_idle.energy_j <= 0) continue;
    const auto processes_on_device =
        static_cast<double>(std::ranges::count_if(activity_sums_.processes(), [&](const auto& process_names) {
          return process_names.second.is_partly_traced() && has_queue_on_device(process_names.second, device);
        }));
    const auto scaled_idle = [&](double factor) {
      IdleAmount amount;
      amount.add(total_idle, factor);
      return amount;
    };
    const auto charge_scope = [&](std::uint32_t scope, double share) {
      const WaitTally wait{.queue = 0, .scope = scope, .kind = WaitKind::host, .count = 1, .time_ns = 0};
      charge_idle_energy(process, wait, {activity.begin_ns, activity.end_ns}, gpu->second.domain_name,
                         scaled_idle(share / processes_on_device));
    };
    for (const ScopeTally& tally : activity.scope_tallies) {
      if (tally.scope != 0 && tally.wall_ns > 0) charge_scope(tally.scope, seconds(tally.wall_ns) / total_time_s);
    }
    if (scope_time_s < total_time_s) charge_scope(0, 1 - scope_time_s / total_time_s);
    idle_charged_to_host_[gpu->second.domain_name].add(total_idle, 1 / processes_on_device);
  }
}

std::vector<IdleEntry> Ledger::make_idle_entries() const {
  std::map<std::pair<IdleCause, RowKey>, IdleAmount> idle_by_cause_and_row = idle_amounts_;
  const auto add = [&](IdleCause cause, const std::string& device, const IdleAmount& amount) {
    if (amount.energy_j > 0 || amount.time_s > 0) idle_by_cause_and_row[{cause, {{}, device}}].add(amount);
  };
  for (const GpuAttribution::UnexplainedIdle& idle : gpu_attribution_.unexplained_idle()) {
    IdleAmount between_kernels = idle.between_kernels;
    if (const auto charged = idle_charged_to_host_.find(idle.device); charged != idle_charged_to_host_.end())
      between_kernels.add(charged->second, -1);
    between_kernels.time_s = std::max(between_kernels.time_s, 0.0);
    add(IdleCause::startup, idle.device, idle.before_first_kernel);
    add(IdleCause::unknown, idle.device, between_kernels);
    add(IdleCause::shutdown, idle.device, idle.after_last_kernel);
  }
  if (row_level_ != RowLevel::kernel) {
    const TimeCurve& idle_j = cpu_attribution_.idle_j_over_time();
    const auto [begin_ns, end_ns] = idle_j.span();
    add(IdleCause::unknown, std::string(kCpuDevice),
        {.energy_j = idle_j.total(),
         .program_energy_j = machine_energy_.program_amount_between(idle_j, begin_ns, end_ns)});
  }
  std::vector<IdleEntry> entries;
  for (const auto& [key, sum] : idle_by_cause_and_row) {
    IdleEntry& entry = entries.emplace_back();
    entry.cause = key.first;
    std::tie(entry.path, entry.device) = key.second;
    entry.time_s = sum.time_s;
    entry.energy_j = sum.energy_j;
    entry.program_time_s = std::clamp(sum.program_time_s, 0.0, std::max(sum.time_s, 0.0));
    entry.program_energy_j = std::clamp(sum.program_energy_j, 0.0, std::max(sum.energy_j, 0.0));
    entry.is_included_in_rows = !entry.path.empty();
    if (const auto interval = gpu_attribution_.idle_energy_interval(entry.device, sum.energy_j))
      std::tie(entry.low_j, entry.high_j) = *interval;
  }
  std::ranges::stable_sort(entries, std::greater(), [](const IdleEntry& entry) { return entry.energy_j.value_or(0); });
  return entries;
}

}  // namespace joulemap::attribution

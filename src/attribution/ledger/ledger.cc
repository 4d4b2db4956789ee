// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/ledger.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "attribution/gpu/lost_kernels.h"
#include "base/clock.h"
#include "base/demangle.h"
#include "base/quadrature.h"

namespace joulemap::attribution {
namespace {

// Name of a scope in no phase, module or region; used only to list the functions there.
constexpr std::string_view kOutside = "outside";
// By rank: processes without a rank, such as the launcher.
constexpr std::string_view kNoRank = "no rank";
// Relative standard deviation of the energy of one call around the value from its counter readings and the mean power
// of its layer. Over many calls it averages out.
constexpr double kCallSpread = 0.3;
// What remains of the measured energy below this share of it is rounding of sums, not energy.
constexpr double kRounding = 1e-12;

double share_inside(const Activity& activity, TimeSpan span) {
  const std::int64_t from_ns = std::max(activity.begin_ns, span.begin_ns);
  const std::int64_t to_ns = std::min(activity.end_ns, span.end_ns);
  return to_ns > from_ns ? seconds(to_ns - from_ns) / seconds(activity.end_ns - activity.begin_ns) : 0;
}

}  // namespace

Ledger::Ledger(RowLevel level, const MachineEnergy& energy, ActivitySums& sums)
    : level_(level), energy_(energy), sums_(sums), cpu_attribution_(energy, sums), gpu_attribution_(energy, sums) {}

std::vector<std::string> Ledger::path_at_level(std::uint32_t process, const ResolvedScope& resolved_scope) const {
  if (resolved_scope.is_probe()) return {std::string(kProbeMode)};  // not part of the run's layers
  if (level_ == RowLevel::rank) {
    const std::string& rank = sums_.names(process).rank;
    return {rank.empty() ? std::string(kNoRank) : "rank " + rank};
  }
  if (level_ == RowLevel::phase) return resolved_scope.phase_path();
  if (level_ == RowLevel::region) return resolved_scope.regions;
  std::vector<std::string> path = resolved_scope.layer_path();
  if (path.empty() && level_ == RowLevel::function) path = {std::string(kOutside)};
  return path;
}

// The part that a layer's energy is split into.
std::string Ledger::part_at_level(const ResolvedScope& resolved_scope) const {
  if (resolved_scope.is_probe()) return {};
  if (level_ == RowLevel::op) return resolved_scope.op;
  if (level_ == RowLevel::tensor) return resolved_scope.op_with_tensors();
  if (level_ != RowLevel::function) return {};
  return resolved_scope.function.empty() ? resolved_scope.op : resolved_scope.function;
}

void Ledger::credit(std::vector<std::string> path, const std::string& device, const Amount& amount,
                    const ResolvedScope& resolved_scope, std::string_view basis, bool has_energy) {
  Entry& entry = entries_[{std::move(path), device}];
  entry.basis = basis;
  entry.has_energy = entry.has_energy || has_energy;
  entry.is_module = entry.is_module || !resolved_scope.module.empty();
  const auto grow = [&](Amount& sum, bool entered) {
    if (entered) sum.count += amount.count;
    if (entered) sum.sampled += amount.sampled;
    sum.time_s += amount.time_s;
    sum.energy_j += amount.energy_j;
    sum.by_class.add(amount.by_class);
    sum.evidence.add(amount.evidence);
    sum.waiting_s += amount.waiting_s;
    sum.waiting_j += amount.waiting_j;
  };
  // Entering an operation or a function does not count as entering its layer. A kernel counts for its layer in any
  // case.
  grow(entry.sum, (resolved_scope.op.empty() && resolved_scope.function.empty()) || device != kCpuDevice);
  if (const std::string part = part_at_level(resolved_scope); !part.empty()) grow(entry.parts[part], true);
}

void Ledger::add_scope(std::uint32_t process, const ScopeTally& tally, const ClassJoules& joules) {
  const ResolvedScope& resolved_scope = sums_.names(process).scopes.resolved_scope(tally.scope);
  cpu_attribution_.add_to_total(joules);
  std::vector<std::string> path = path_at_level(process, resolved_scope);
  if (path.empty()) return;
  if (level_ == RowLevel::rank) processes_[{path, std::string(kCpuDevice)}].insert(process);
  const Amount amount{tally.count, tally.sampled, seconds(tally.wall_ns), joules.sum(), joules, evidence_of(tally)};
  credit(std::move(path), std::string(kCpuDevice), amount, resolved_scope, kCpuTimeBasis, energy_.cpu_j.has_value());
}

// Work before or after the command gets no part of the command's energy.
void Ledger::add_scopes(std::uint32_t process, const Activity& activity, double inside) {
  CpuAttribution::Rates rates = cpu_attribution_.rates(activity.begin_ns, activity.end_ns);
  rates.per_modelled_j *= inside;
  rates.per_busy_wall_s *= inside;
  const std::vector<double> present_s = busy_wall_s(activity);
  for (std::size_t i = 0; i < present_s.size(); ++i) {
    const ScopeTally& tally = activity.scope_tallies[i];
    add_scope(process, tally, cpu_attribution_.attribute_tally(process, tally, present_s[i], rates));
  }
}

// The demangled name; in a stack it is the innermost of several names.
const std::string& Ledger::kernel_name(std::uint32_t process, std::uint32_t class_id) {
  const auto [name, is_new] = kernel_names_.try_emplace({process, class_id});
  if (!is_new) return name->second;
  const auto& classes = sums_.names(process).classes;
  const auto known = classes.find(class_id);
  return name->second = known == classes.end() ? "unknown kernel" : demangled(known->second.name);
}

// A kernel without a description counts as compute.
GpuActivityKind Ledger::kernel_activity_kind(std::uint32_t process, std::uint32_t class_id) {
  const auto [kind, is_new] = kernel_activity_kinds_.try_emplace({process, class_id}, GpuActivityKind::computes);
  const auto& classes = sums_.names(process).classes;
  const auto known = classes.find(class_id);
  if (is_new && known != classes.end()) kind->second = activity_kind_of(known->second);
  return kind->second;
}

void Ledger::add_kernel(std::uint32_t process, const KernelTally& tally, const KernelRate& kernel) {
  const auto& [device, rate, extrapolation_factor] = kernel;
  ProcessNames& names = sums_.names(process);
  const ResolvedScope& resolved_scope = names.scopes.resolved_scope(tally.scope);
  const double time_s = seconds(tally.time_ns) * extrapolation_factor;
  const auto count = static_cast<std::uint64_t>(std::llround(static_cast<double>(tally.count) * extrapolation_factor));
  const auto gpu = energy_.gpus.find(device);
  const bool has_energy = gpu != energy_.gpus.end();
  const std::string shown = has_energy ? gpu->second.domain : device;
  std::vector<std::string> path;
  if (level_ == RowLevel::kernel && !resolved_scope.is_probe()) {
    const auto known = names.classes.find(tally.class_id);
    path = {known == names.classes.end() ? "unknown kernel" : known->second.name};
  } else {
    path = path_at_level(process, resolved_scope);
    if (path.empty() && has_program_row()) path = {std::string(kProgramRow)};
    if (level_ == RowLevel::stack && !path.empty() && !resolved_scope.is_probe())
      path.push_back(kernel_name(process, tally.class_id));
  }
  const double length_ns =
      static_cast<double>(tally.time_ns) / static_cast<double>(std::max<std::uint64_t>(tally.count, 1));
  const GpuAttribution::Weight weight = gpu_attribution_.weight(device, process, tally.class_id, length_ns);
  Amount amount{count, 0, time_s, time_s * rate * weight.weight};
  amount.evidence = evidence_of(kernel_activity_kind(process, tally.class_id), time_s, static_cast<double>(count));
  if (weight.is_power_known) {
    amount.by_class.add(weight.column, amount.energy_j);
    gpu_attribution_.add_to_total(shown, amount.by_class);
  }
  if (path.empty()) return;
  if (level_ == RowLevel::rank) processes_[{path, shown}].insert(process);
  credit(std::move(path), shown, amount, resolved_scope, kTimeShareBasis, has_energy);
}

void Ledger::add_kernels(std::uint32_t process, const Activity& activity, double inside) {
  ProcessNames& names = sums_.names(process);
  std::map<std::tuple<std::uint32_t, bool, bool>, KernelRate> rates;  // by queue, runs once, is lost
  for (const KernelTally& tally : activity.kernel_tallies) {
    const bool is_one_time = names.scopes.resolved_scope(tally.scope).is_one_time();
    const auto [known, is_new] = rates.try_emplace({tally.queue, is_one_time, tally.class_id == kLostKernelClass});
    if (is_new) {
      const Extrapolation all =
          names.extrapolation_of({activity.begin_ns, activity.end_ns}, is_one_time, tally.class_id);
      const std::string device = names.device_of(tally.queue);
      known->second = {device, inside * gpu_attribution_.rate(device, all.span.begin_ns, all.span.end_ns), all.weight};
    }
    add_kernel(process, tally, known->second);
  }
}

void Ledger::add(std::uint32_t process, const Activity& activity) {
  const double inside = share_inside(activity, sums_.captured_cpu_s().span());
  if (level_ != RowLevel::kernel) add_scopes(process, activity, inside);
  ScopePaths& scopes = sums_.names(process).scopes;
  for (const ScopeShare& share : activity.shares) {
    if (level_ == RowLevel::rank) break;  // all of it belongs to one rank
    const std::vector<std::string> coarse_scope = path_at_level(process, scopes.resolved_scope(share.coarse_scope));
    const ResolvedScope& fine = scopes.resolved_scope(share.scope);
    std::vector<std::string> path = path_at_level(process, fine);
    if (const std::string part = part_at_level(fine); !part.empty()) path.push_back(part);
    const bool is_function = !fine.function.empty();
    Amount& sum = (is_function ? function_shares_ : shares_)[coarse_scope][std::move(path)];
    // Samples in a function, or operations in a layer, are no counts of calls.
    if (is_function) sum.sampled += share.count;
    if (!is_function && !part_at_level(fine).empty()) sum.count += share.count;
    sum.time_s += seconds(share.time_ns);
  }
  add_kernels(process, activity, inside);
  add_waits(process, activity, inside);
  add_unexplained_idle(process, activity);
}

void Ledger::add_background() {
  for (const GpuAttribution::Background& co_tenants : gpu_attribution_.backgrounds()) {
    gpu_attribution_.add_to_total(co_tenants.domain, co_tenants.by_class);
    credit({std::string(kBackgroundRow)}, co_tenants.domain,
           {0, 0, co_tenants.time_s, co_tenants.energy_j, co_tenants.by_class}, {}, kTimeShareBasis, true);
  }
  if (level_ == RowLevel::kernel || cpu_attribution_.background_s() <= 0) return;
  const ClassJoules& joules = cpu_attribution_.background();
  credit({std::string(kBackgroundRow)}, std::string(kCpuDevice),
         {0, 0, cpu_attribution_.background_s(), joules.sum(), joules}, {}, kCpuTimeBasis, energy_.cpu_j.has_value());
}

// If a GPU is measured but no kernels were recorded, CPUs may have launched anything. Imported traces contain no CPU
// time.
RowCauses Ledger::causes() const {
  const bool has_kernels = energy_.gpus.empty() || !sums_.gpu_busy_s().empty();
  const bool has_cpu_time = energy_.has_sampled_operations;
  const bool has_function_names = level_ == RowLevel::op || level_ == RowLevel::tensor || level_ == RowLevel::function;
  RowCauses causes(has_kernels && has_cpu_time, has_function_names);
  for (const auto& [key, entry] : entries_) causes.add(key.first, entry.sum.evidence);
  causes.finish();
  return causes;
}

ReportRow Ledger::row_of(const Key& key, const Entry& entry) const {
  ReportRow row;
  row.path = key.first;
  row.name = row.path.back();
  row.display_name = level_ == RowLevel::kernel ? demangled(row.name) : row.name;
  row.device = key.second;
  row.count = entry.sum.count;
  row.time_s = entry.sum.time_s;
  row.basis = entry.basis;
  if (!entry.has_energy) return row;
  row.energy_j = entry.sum.energy_j;
  if (row.device != kCpuDevice && knows_waiting()) {
    row.waiting_s = entry.sum.waiting_s;
    row.waiting_j = entry.sum.waiting_j;
    if (const auto interval = gpu_attribution_.idle_interval(row.device, entry.sum.waiting_j))
      std::tie(row.waiting_low_j, row.waiting_high_j) = *interval;
  }
  if (row.time_s > 0) row.power_w = entry.sum.energy_j / row.time_s;
  if (row.basis == kTimeShareBasis) gpu_attribution_.describe(row, entry.sum.by_class);
  if (row.basis == kCpuTimeBasis) {
    const double calls = entry.sum.count > 0 ? kCallSpread / std::sqrt(static_cast<double>(entry.sum.count)) : 0;
    cpu_attribution_.describe(row, entry.sum.by_class, add_in_quadrature(calls, entry.spread));
  }
  return row;
}

// Computes the unattributed energy and each row's share of the attributed energy. Sets nothing if no energy is known.
void Ledger::balance(LedgerResult& result) const {
  double measured_j = energy_.cpu_j ? energy_.cpu_j->total() : 0;
  std::map<std::string, double> gpus;  // each GPU is listed under two names
  for (const auto& [device, gpu] : energy_.gpus) gpus[gpu.domain] = gpu.energy_j.total();
  for (const auto& [domain, joules] : gpus) measured_j += joules;
  if (!energy_.cpu_j && gpus.empty()) return;
  double attributed_j = 0;
  for (const ReportRow& row : result.rows) attributed_j += row.energy_j.value_or(0);
  const bool only_gpus = level_ == RowLevel::kernel;
  result.attributed_j = attributed_j;
  result.idle_j = (only_gpus ? 0 : cpu_attribution_.idle_j()) + gpu_attribution_.idle_j();
  const double rest_j = measured_j - attributed_j - *result.idle_j;
  result.unattributed_j = std::abs(rest_j) < kRounding * measured_j ? 0 : rest_j;
  result.idle = idle_entries();
  for (ReportRow& row : result.rows) {
    if (row.energy_j && attributed_j > 0) row.share = *row.energy_j / attributed_j;
  }
}

LedgerResult Ledger::finish(const Grouping& grouping) {
  if (level_ == RowLevel::op || level_ == RowLevel::tensor || level_ == RowLevel::function) split_parts();
  split_scopes();
  if (level_ == RowLevel::function) gather_functions();
  add_background();
  LedgerResult result;
  const RowCauses causes = this->causes();
  for (const auto& [key, entry] : entries_) {
    const CauseEvidence& evidence = entry.sum.evidence;
    result.rows.push_back(row_of(key, entry));
    result.rows.back().cause =
        key.second == kCpuDevice ? causes.cpu_cause(key.first, evidence) : causes.gpu_cause(evidence);
    // Scopes and kernels of a rank are of many kinds: its count is the number of its processes.
    if (const auto all = processes_.find(key); all != processes_.end()) result.rows.back().count = all->second.size();
  }
  std::sort(result.rows.begin(), result.rows.end(), [](const ReportRow& a, const ReportRow& b) {
    return std::pair(a.energy_j.value_or(0), a.time_s) > std::pair(b.energy_j.value_or(0), b.time_s);
  });
  for (const auto& [device, busy_s] : sums_.gpu_busy_s()) {
    if (energy_.gpus.contains(device)) continue;
    result.diagnostics.add({"gpu_not_measured", 1, "kernels ran on " + device + ", whose energy was not recorded",
                            "run joulemap doctor to see why"});
  }
  if (grouping.is_enabled) result.groups = groups(grouping);
  gpu_attribution_.diagnose(result.diagnostics);
  balance(result);
  return result;
}

}  // namespace joulemap::attribution

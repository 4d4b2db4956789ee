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

double share_inside(const Activity& activity, TimeSpan span) {
  const std::int64_t from_ns = std::max(activity.begin_ns, span.begin_ns);
  const std::int64_t to_ns = std::min(activity.end_ns, span.end_ns);
  return to_ns > from_ns ? seconds(to_ns - from_ns) / seconds(activity.end_ns - activity.begin_ns) : 0;
}

}  // namespace

Ledger::Ledger(Level level, const MachineEnergy& energy, ActivitySums& sums)
    : level_(level), energy_(energy), sums_(sums), cpu_shares_(energy, sums), gpu_shares_(energy, sums) {}

std::vector<std::string> Ledger::path_at_level(std::uint32_t process, const ScopeMeaning& meaning) const {
  if (meaning.probes()) return {std::string(kProbeMode)};  // not part of the run's layers
  if (level_ == Level::rank) {
    const std::string& rank = sums_.names(process).rank;
    return {rank.empty() ? std::string(kNoRank) : "rank " + rank};
  }
  if (level_ == Level::phase) return meaning.phase_path();
  if (level_ == Level::region) return meaning.regions;
  std::vector<std::string> path = meaning.layer_path();
  if (path.empty() && level_ == Level::function) path = {std::string(kOutside)};
  return path;
}

// The part that a layer's energy is split into.
std::string Ledger::part_at_level(const ScopeMeaning& meaning) const {
  if (meaning.probes()) return {};
  if (level_ == Level::op) return meaning.op;
  if (level_ == Level::tensor) return meaning.op_with_tensors();
  if (level_ != Level::function) return {};
  return meaning.function.empty() ? meaning.op : meaning.function;
}

void Ledger::credit(std::vector<std::string> path, const std::string& device, const Amount& amount,
                    const ScopeMeaning& meaning, std::string_view basis, bool has_energy) {
  Entry& entry = entries_[{std::move(path), device}];
  entry.basis = basis;
  entry.has_energy = entry.has_energy || has_energy;
  entry.is_module = entry.is_module || !meaning.module.empty();
  const auto grow = [&](Amount& sum, bool entered) {
    if (entered) sum.count += amount.count;
    if (entered) sum.sampled += amount.sampled;
    sum.time_s += amount.time_s;
    sum.energy_j += amount.energy_j;
    sum.by_class.add(amount.by_class);
    sum.evidence.add(amount.evidence);
  };
  // Entering an operation or a function does not count as entering its layer. A kernel counts for its layer in any
  // case.
  grow(entry.sum, (meaning.op.empty() && meaning.function.empty()) || device != kCpu);
  if (const std::string part = part_at_level(meaning); !part.empty()) grow(entry.parts[part], true);
}

void Ledger::add_scope(std::uint32_t process, const ScopeTally& tally, const ClassJoules& joules) {
  const ScopeMeaning& meaning = sums_.names(process).scopes.meaning(tally.scope);
  cpu_shares_.note(joules);
  std::vector<std::string> path = path_at_level(process, meaning);
  if (path.empty()) return;
  if (level_ == Level::rank) processes_[{path, std::string(kCpu)}].insert(process);
  const Amount amount{tally.count, tally.sampled, seconds(tally.wall_ns), joules.sum(), joules, evidence_of(tally)};
  credit(std::move(path), std::string(kCpu), amount, meaning, kByCpuTime, energy_.cpu_j.has_value());
}

// Work before or after the command gets no part of the command's energy.
void Ledger::add_scopes(std::uint32_t process, const Activity& activity, double inside) {
  CpuShares::Rates rates = cpu_shares_.rates(activity.begin_ns, activity.end_ns);
  rates.per_modelled_j *= inside;
  rates.per_present_s *= inside;
  const std::vector<double> present_s = presence_s(activity);
  for (std::size_t i = 0; i < present_s.size(); ++i) {
    const ScopeTally& tally = activity.scope_tallies[i];
    add_scope(process, tally, cpu_shares_.part(process, tally, present_s[i], rates));
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
GpuActivityKind Ledger::kernel_doing(std::uint32_t process, std::uint32_t class_id) {
  const auto [doing, is_new] = kernel_doings_.try_emplace({process, class_id}, GpuActivityKind::computes);
  const auto& classes = sums_.names(process).classes;
  const auto known = classes.find(class_id);
  if (is_new && known != classes.end()) doing->second = activity_kind_of(known->second);
  return doing->second;
}

void Ledger::add_kernel(std::uint32_t process, const KernelTally& tally, const KernelRate& kernel) {
  const auto& [device, rate, extrapolation_of] = kernel;
  ProcessNames& names = sums_.names(process);
  const ScopeMeaning& meaning = names.scopes.meaning(tally.scope);
  const double time_s = seconds(tally.time_ns) * extrapolation_of;
  const auto count = static_cast<std::uint64_t>(std::llround(static_cast<double>(tally.count) * extrapolation_of));
  const auto gpu = energy_.gpus.find(device);
  const bool has_energy = gpu != energy_.gpus.end();
  const std::string shown = has_energy ? gpu->second.domain : device;
  std::vector<std::string> path;
  if (level_ == Level::kernel && !meaning.probes()) {
    const auto known = names.classes.find(tally.class_id);
    path = {known == names.classes.end() ? "unknown kernel" : known->second.name};
  } else {
    path = path_at_level(process, meaning);
    if (level_ == Level::stack && !path.empty() && !meaning.probes())
      path.push_back(kernel_name(process, tally.class_id));
  }
  const double length_ns =
      static_cast<double>(tally.time_ns) / static_cast<double>(std::max<std::uint64_t>(tally.count, 1));
  const GpuShares::Weight weight = gpu_shares_.weight(device, process, tally.class_id, length_ns);
  Amount amount{count, 0, time_s, time_s * rate * weight.weight};
  amount.evidence = evidence_of(kernel_doing(process, tally.class_id), time_s, static_cast<double>(count));
  if (weight.known) {
    amount.by_class.add(weight.column, amount.energy_j);
    gpu_shares_.note(shown, amount.by_class);
  }
  if (path.empty()) return;
  if (level_ == Level::rank) processes_[{path, shown}].insert(process);
  credit(std::move(path), shown, amount, meaning, kByTimeShare, has_energy);
}

void Ledger::add_kernels(std::uint32_t process, const Activity& activity, double inside) {
  ProcessNames& names = sums_.names(process);
  std::map<std::tuple<std::uint32_t, bool, bool>, KernelRate> rates;  // by queue, is probe, is lost
  for (const KernelTally& tally : activity.kernel_tallies) {
    const bool probes = names.scopes.meaning(tally.scope).probes();
    const auto [known, is_new] = rates.try_emplace({tally.queue, probes, tally.class_id == kLostClass});
    if (is_new) {
      const Extrapolation all = names.extrapolation_of({activity.begin_ns, activity.end_ns}, probes, tally.class_id);
      const std::string device = names.device_of(tally.queue);
      known->second = {device, inside * gpu_shares_.rate(device, all.span.begin_ns, all.span.end_ns), all.weight};
    }
    add_kernel(process, tally, known->second);
  }
}

void Ledger::add(std::uint32_t process, const Activity& activity) {
  const double inside = share_inside(activity, sums_.captured_cpu_s().span());
  if (level_ != Level::kernel) add_scopes(process, activity, inside);
  ScopePaths& scopes = sums_.names(process).scopes;
  for (const ScopeShare& share : activity.shares) {
    if (level_ == Level::rank) break;  // all of it belongs to one rank
    const std::vector<std::string> coarse = path_at_level(process, scopes.meaning(share.coarse));
    const ScopeMeaning& fine = scopes.meaning(share.scope);
    std::vector<std::string> path = path_at_level(process, fine);
    if (const std::string part = part_at_level(fine); !part.empty()) path.push_back(part);
    const bool is_function = !fine.function.empty();
    Amount& sum = (is_function ? function_shares_ : shares_)[coarse][std::move(path)];
    // Samples in a function, or operations in a layer, are no counts of calls.
    if (is_function) sum.sampled += share.count;
    if (!is_function && !part_at_level(fine).empty()) sum.count += share.count;
    sum.time_s += seconds(share.time_ns);
  }
  add_kernels(process, activity, inside);
}

void Ledger::add_background() {
  for (const GpuShares::Background& others : gpu_shares_.backgrounds()) {
    gpu_shares_.note(others.domain, others.by_class);
    credit({std::string(kBackground)}, others.domain, {0, 0, others.time_s, others.energy_j, others.by_class}, {},
           kByTimeShare, true);
  }
  if (level_ == Level::kernel || cpu_shares_.background_s() <= 0) return;
  const ClassJoules& joules = cpu_shares_.background();
  credit({std::string(kBackground)}, std::string(kCpu), {0, 0, cpu_shares_.background_s(), joules.sum(), joules}, {},
         kByCpuTime, energy_.cpu_j.has_value());
}

// If a GPU is measured but no kernels were recorded, CPUs may have launched anything. Imported traces contain no CPU
// time.
RowCauses Ledger::causes() const {
  const bool tells_kernels = energy_.gpus.empty() || !sums_.gpu_busy_s().empty();
  const bool tells_cpu_time = energy_.samples_calls;
  const bool reads_names = level_ == Level::op || level_ == Level::tensor || level_ == Level::function;
  RowCauses causes(tells_kernels && tells_cpu_time, reads_names);
  for (const auto& [key, entry] : entries_) causes.add(key.first, entry.sum.evidence);
  causes.finish();
  return causes;
}

ReportRow Ledger::row_of(const Key& key, const Entry& entry) const {
  ReportRow row;
  row.path = key.first;
  row.name = row.path.back();
  row.display_name = level_ == Level::kernel ? demangled(row.name) : row.name;
  row.device = key.second;
  row.count = entry.sum.count;
  row.time_s = entry.sum.time_s;
  row.basis = entry.basis;
  if (!entry.has_energy) return row;
  row.energy_j = entry.sum.energy_j;
  if (row.time_s > 0) row.power_w = entry.sum.energy_j / row.time_s;
  if (row.basis == kByTimeShare) gpu_shares_.describe(row, entry.sum.by_class);
  if (row.basis == kByCpuTime) {
    const double calls = entry.sum.count > 0 ? kCallSpread / std::sqrt(static_cast<double>(entry.sum.count)) : 0;
    cpu_shares_.describe(row, entry.sum.by_class, in_quadrature(calls, entry.spread));
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
  const bool only_gpus = level_ == Level::kernel;
  result.attributed_j = attributed_j;
  result.idle_j = (only_gpus ? 0 : cpu_shares_.idle_j()) + gpu_shares_.idle_j();
  result.unattributed_j = measured_j - attributed_j - *result.idle_j;
  for (ReportRow& row : result.rows) {
    if (row.energy_j && attributed_j > 0) row.share = *row.energy_j / attributed_j;
  }
}

LedgerResult Ledger::finish(const Grouping& grouping) {
  if (level_ == Level::op || level_ == Level::tensor || level_ == Level::function) split_parts();
  split_scopes();
  if (level_ == Level::function) gather_functions();
  add_background();
  LedgerResult result;
  const RowCauses causes = this->causes();
  for (const auto& [key, entry] : entries_) {
    const CauseEvidence& evidence = entry.sum.evidence;
    result.rows.push_back(row_of(key, entry));
    result.rows.back().cause = key.second == kCpu ? causes.of_cpu(key.first, evidence) : causes.of_gpu(evidence);
    // Scopes and kernels of a rank are of many kinds: its count is the number of its processes.
    if (const auto all = processes_.find(key); all != processes_.end()) result.rows.back().count = all->second.size();
  }
  std::sort(result.rows.begin(), result.rows.end(), [](const ReportRow& a, const ReportRow& b) {
    return std::pair(a.energy_j.value_or(0), a.time_s) > std::pair(b.energy_j.value_or(0), b.time_s);
  });
  for (const auto& [device, busy_s] : sums_.gpu_busy_s()) {
    if (energy_.gpus.contains(device)) continue;
    result.diagnostics.add({"gpu_not_measured", 1, "kernels ran on " + device + ", whose energy was not recorded",
                            "joulemap doctor tells why"});
  }
  if (grouping.wanted) result.groups = groups(grouping);
  gpu_shares_.diagnose(result.diagnostics);
  balance(result);
  return result;
}

}  // namespace joulemap::attribution

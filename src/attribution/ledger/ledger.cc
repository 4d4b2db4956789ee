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
#include "scopes/path_tree.h"

namespace joulemap::attribution {
namespace {

// By function: path of functions outside of all phases, modules and regions.
constexpr std::string_view kOutside = "outside";
// By rank: processes without a rank, such as the launcher.
constexpr std::string_view kNoRank = "no rank";
// Relative standard deviation of the energy of one call about the value from its CPU time and the power of its layer.
// For n calls it falls with sqrt(n).
constexpr double kCallSpread = 0.3;
// Unattributed energy below this fraction of the measured energy is rounding error and is reported as 0.
constexpr double kRounding = 1e-12;

double share_inside(const Activity& activity, TimeSpan span) {
  const std::int64_t from_ns = std::max(activity.begin_ns, span.begin_ns);
  const std::int64_t to_ns = std::min(activity.end_ns, span.end_ns);
  return to_ns > from_ns ? seconds(to_ns - from_ns) / seconds(activity.end_ns - activity.begin_ns) : 0;
}

}  // namespace

Ledger::Ledger(RowLevel level, const MachineEnergy& energy, ActivitySums& sums)
    : level_(level), energy_(energy), sums_(sums), cpu_attribution_(energy, sums), gpu_attribution_(energy, sums) {}

namespace {

// At the level of modules, a module is the whole path. A network may have a module "probe" or "background", and rows of
// these names mean something else.
std::string module_row_name(const std::string& module) {
  const std::string_view first = std::string_view(module).substr(0, module.find('.'));
  const bool is_taken = first == kProbeMode || first == kBackgroundRow || first == kProgramRow || first == kTrainMode;
  return is_taken ? "module " + module : module;
}

}  // namespace

std::vector<std::string> Ledger::path_at_level(std::uint32_t process, const ResolvedScope& resolved_scope) const {
  if (resolved_scope.is_probe()) return {std::string(kProbeMode)};  // not part of the run's layers
  if (level_ == RowLevel::rank) {
    const std::string& rank = sums_.names(process).rank;
    return {rank.empty() ? std::string(kNoRank) : "rank " + rank};
  }
  if (level_ == RowLevel::phase) return resolved_scope.phase_path();
  if (level_ == RowLevel::region) return resolved_scope.regions;
  if (level_ == RowLevel::module && !resolved_scope.module.empty()) return {module_row_name(resolved_scope.module)};
  std::vector<std::string> path = resolved_scope.layer_path();
  if (path.empty() && level_ == RowLevel::function) path = {std::string(kOutside)};
  return path;
}

// Name of the operation or function below the layer, at levels that show it; else empty.
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

// `inside`: the share of the activity within the command's time; work outside of it gets no energy.
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
  std::map<std::tuple<std::uint32_t, bool, bool>, KernelRate> rates;  // by queue, is_one_time, is lost
  for (const KernelTally& tally : activity.kernel_tallies) {
    const bool is_one_time = names.scopes.resolved_scope(tally.scope).is_one_time();
    const auto [known, is_new] = rates.try_emplace({tally.queue, is_one_time, tally.class_id == kLostKernelClass});
    if (is_new) {
      const Extrapolation all =
          names.extrapolation_of({activity.begin_ns, activity.end_ns}, is_one_time, tally.class_id);
      const std::string device = names.device_of(tally.queue);
      double rate = 0;
      for_each_part_without(names.idle_gaps_of(device), all.span, [&](TimeSpan part, double share) {
        rate += share * gpu_attribution_.rate(device, part.begin_ns, part.end_ns);
      });
      known->second = {device, inside * rate, all.weight};
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
    // A count of stack samples, or of operations in a layer, is no count of calls.
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

// Without host evidence if a GPU is measured but no kernels were recorded, because threads may have launched anything,
// and for imported traces, which contain no CPU time.
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

// The part of the Ledger that splits the energy of a layer among its operations and functions.

namespace {

constexpr std::array<std::pair<std::string_view, RowLevel>, 15> kLevels = {{{"domain", RowLevel::domain},
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
                                                                            {"token", RowLevel::token}}};

constexpr double kMinTime_s = 1e-9;  // resolution of recorded times; less is rounding error of sums
constexpr double kMinEnergy_j = 1e-12;
// If its operations take at least this share of a module's time, they get all of it: calling a module that only calls
// an operation takes up to twice as long as the operation. Below it, the module computes without PyTorch.
constexpr double kMinModuleShare = 0.25;
// Relative standard deviation, from step to step, of the shares of operations within their layer.
constexpr double kStepSpread = 0.2;

double sampling_spread(double of_one, std::uint64_t samples) {
  return of_one / std::sqrt(static_cast<double>(std::max(samples, std::uint64_t{1})));
}

}  // namespace

std::optional<RowLevel> parse_level(std::string_view name) {
  for (const auto& [text, level] : kLevels) {
    if (text == name) return level;
  }
  return std::nullopt;
}

std::string_view name_of(RowLevel level) { return kLevels[static_cast<std::size_t>(level)].first; }

void Ledger::split_scope(const std::vector<std::string>& coarse, const Parts& parts) {
  double parts_s = 0;
  for (const auto& [path, amount] : parts) parts_s += amount.time_s;
  if (parts_s <= 0) return;
  std::vector<Key> keys;
  for (const auto& [key, entry] : entries_) {
    if (key.first == coarse && !entry.is_part) keys.push_back(key);
  }
  for (const Key& key : keys) {
    const Entry whole = entries_.extract(key).mapped();
    for (const auto& [path, amount] : parts) {
      const double share = amount.time_s / parts_s;
      const double calls = static_cast<double>(amount.count) * whole.sum.time_s / parts_s;
      Amount part{static_cast<std::uint64_t>(std::llround(calls)), 0, whole.sum.time_s * share,
                  whole.sum.energy_j * share};
      part.by_class.add(whole.sum.by_class, share);
      part.waiting_s = whole.sum.waiting_s * share;
      part.waiting_j = whole.sum.waiting_j * share;
      const bool is_only_seen = amount.sampled > 0;  // a function known from stack samples
      const CauseEvidence& evidence = whole.sum.evidence;
      part.evidence.add(is_only_seen ? evidence.unclassified() : evidence, share);
      const std::vector<std::string>& fine = path.empty() ? coarse : path;
      credit(fine, key.second, part, {}, whole.basis, whole.has_energy);
      Entry& row = entries_[{fine, key.second}];
      row.is_part = true;
      row.spread = sampling_spread(amount.sampled > 0 ? std::sqrt(1 - share) : kStepSpread * (1 - share),
                                   std::max(amount.sampled, std::uint64_t{1}));
    }
  }
}

// Recorded operations take precedence over functions from stack samples.
void Ledger::split_scopes() {
  for (const auto& [coarse, parts] : shares_) split_scope(coarse, parts);
  if (level_ != RowLevel::function) return;
  for (const auto& [coarse, parts] : function_shares_) split_scope(coarse, parts);
}

// For traces that contain every call: an operation has its own time, and the rest of the layer's time stays with the
// layer.
void Ledger::split_off_parts() {
  std::map<Key, Entry> split_entries;
  for (auto& [key, entry] : entries_) {
    Entry rest = std::move(entry);
    for (const auto& [part, amount] : rest.parts) {
      Key fine = key;
      fine.first.push_back(part);
      split_entries[fine] = {amount, rest.basis, rest.has_energy, rest.is_module, {}, true, 0};
      rest.sum.time_s -= amount.time_s;
      rest.sum.energy_j -= amount.energy_j;
      rest.sum.by_class.add(amount.by_class, -1);
      rest.sum.evidence.add(amount.evidence, -1);
      rest.sum.waiting_s -= amount.waiting_s;
      rest.sum.waiting_j -= amount.waiting_j;
      if (key.second != kCpuDevice) rest.sum.count -= amount.count;  // each kernel belongs to one operation
    }
    if (rest.parts.empty() || rest.sum.time_s > kMinTime_s) split_entries.emplace(key, std::move(rest));
  }
  entries_ = std::move(split_entries);
}

void Ledger::add_share(Amount& sum, const Amount& amount, double share) {
  const Amount whole = amount;  // `amount` may alias `sum`
  sum.time_s += share * whole.time_s;
  sum.energy_j += share * whole.energy_j;
  sum.by_class.add(whole.by_class, share);
  sum.evidence.add(whole.evidence, share);
  sum.waiting_s += share * whole.waiting_s;
  sum.waiting_j += share * whole.waiting_j;
}

// Number of steps per sampled step, by how often layers were entered; 0 if no step was sampled.
double Ledger::steps_for_each_sampled() const {
  double entered = 0;
  double sampled = 0;
  for (const auto& [key, entry] : entries_) {
    if (key.second != kCpuDevice || entry.sum.sampled == 0) continue;
    entered += static_cast<double>(entry.sum.count);
    sampled += static_cast<double>(entry.sum.sampled);
  }
  return sampled > 0 ? entered / sampled : 0;
}

void Ledger::split_entry(const Key& key, const Entry& entry, std::map<Key, Entry>& split_entries) {
  double sampled_s = 0;
  double sampled_j = 0;
  for (const auto& [part, amount] : entry.parts) {
    sampled_s += amount.time_s;
    sampled_j += amount.energy_j;
  }
  for (const auto& [part, amount] : entry.parts) {
    const double share = amount.time_s / sampled_s;
    // Calls are counted exactly in sampled steps; the ratio of all entries of the layer to sampled entries scales them.
    const double steps = entry.sum.sampled > 0
                             ? static_cast<double>(entry.sum.count) / static_cast<double>(entry.sum.sampled)
                             : entry.sum.time_s / sampled_s;
    Key fine = key;
    fine.first.push_back(part);
    Entry& row = split_entries[fine];
    row.basis = entry.basis;
    row.has_energy = entry.has_energy;
    row.is_part = true;
    row.sum = {static_cast<std::uint64_t>(std::llround(static_cast<double>(amount.count) * steps)), 0,
               entry.sum.time_s * share, entry.sum.energy_j * share};
    row.sum.evidence.add(amount.evidence, entry.sum.time_s / sampled_s);
    row.sum.waiting_s = entry.sum.waiting_s * share;
    row.sum.waiting_j = entry.sum.waiting_j * share;
    if (sampled_j <= 0) {
      row.sum.by_class.add(entry.sum.by_class, share);
      continue;
    }
    // The energy of each operation in sampled steps is known, not only its time.
    const double energy_share = amount.energy_j / sampled_j;
    row.sum.energy_j = entry.sum.energy_j * energy_share;
    if (key.second == kCpuDevice) {
      row.sum.by_class.add(entry.sum.by_class, energy_share);
      row.spread = sampling_spread(kStepSpread * (1 - energy_share), entry.sum.sampled);
    } else {
      row.sum.by_class.add(amount.by_class, entry.sum.energy_j / sampled_j);
    }
  }
}

// Share of an entry's time that belongs to its operations. A module does little else, unless its operations explain
// only a small part of its time: then it computes without PyTorch. A phase or a region waits, and does other things
// before the first step.
double Ledger::share_of_parts(const Key& key, const Entry& entry, double sampled_s, double steps) const {
  if (key.second != kCpuDevice || steps <= 0 || (entry.is_module && entry.sum.sampled == 0)) return 1;
  const double own_steps =
      entry.sum.sampled > 0 ? static_cast<double>(entry.sum.count) / static_cast<double>(entry.sum.sampled) : steps;
  const double share = std::min(1.0, own_steps * sampled_s / entry.sum.time_s);
  return entry.is_module && share >= kMinModuleShare ? 1 : share;
}

void Ledger::split_parts() {
  if (!energy_.has_sampled_operations) return split_off_parts();
  const double steps = steps_for_each_sampled();
  std::map<Key, Entry> split_entries;
  for (auto& [key, entry] : entries_) {
    double sampled_s = 0;
    for (const auto& [part, amount] : entry.parts) sampled_s += amount.time_s;
    if (sampled_s <= 0) {
      split_entries.emplace(key, std::move(entry));
      continue;
    }
    const double of_parts = share_of_parts(key, entry, sampled_s, steps);
    Entry shared = entry;
    shared.sum = {entry.sum.count, entry.sum.sampled, 0, 0, {}, {}};
    add_share(shared.sum, entry.sum, of_parts);
    split_entry(key, shared, split_entries);
    if (of_parts == 1) continue;
    entry.parts.clear();
    add_share(entry.sum, entry.sum, -of_parts);
    split_entries.emplace(key, std::move(entry));
  }
  entries_ = std::move(split_entries);
}

// Merges the rows of a function in all layers. Drops entries that are no functions: layers without a sampled step.
void Ledger::gather_functions() {
  std::map<Key, Entry> functions;
  for (auto& [key, entry] : entries_) {
    if (!entry.is_part && key.first.front() != kProbeMode) continue;
    Entry& sum = functions[{{key.first.back()}, key.second}];
    sum.basis = entry.basis;
    sum.has_energy = entry.has_energy;
    sum.sum.count += entry.sum.count;
    sum.sum.time_s += entry.sum.time_s;
    sum.sum.energy_j += entry.sum.energy_j;
    sum.sum.by_class.add(entry.sum.by_class);
    sum.sum.evidence.add(entry.sum.evidence);
    sum.spread = add_in_quadrature(sum.spread, entry.spread * entry.sum.energy_j);  // in J until all are added
  }
  for (auto& [key, entry] : functions) entry.spread /= std::max(entry.sum.energy_j, kMinEnergy_j);
  entries_ = std::move(functions);
}

// The part of the Ledger that sums rows along the branches of their tree. It sums joules by class and derives the
// interval from those, as for a single row. In each replicate of the fit, the errors of all rows of a branch are
// correlated: some add up, others cancel (one layer's gain is its neighbour's loss). Adding half widths would make
// intervals too wide, adding them in quadrature too narrow.

std::vector<ReportRow> Ledger::groups(const Grouping& grouping) const {
  struct Group {
    Entry sum;
    double variance_j2 = 0;  // from sampling of steps; independent between rows
  };
  std::map<Key, Group> groups;
  for (const auto& [key, entry] : entries_) {
    if (!scopes::path_matches(key.first, key.second, grouping.filter)) continue;
    std::vector<std::string> branch = scopes::tree_path(key.first, name_of(level_));
    const std::size_t depth = branch.size();
    for (std::size_t length = 0; length <= depth; ++length) {
      branch.resize(depth - length);
      Group& group = groups[{branch, key.second}];
      group.sum.basis = entry.basis;  // of the device; row_of() refines it by the energy by class
      group.sum.has_energy = group.sum.has_energy || entry.has_energy;
      group.sum.sum.count += entry.sum.count;
      // CPU time of other processes is not time of the run.
      const bool is_other_cpu_time = key.second == kCpuDevice && key.first.front() == kBackgroundRow;
      if (!is_other_cpu_time || length == 0) group.sum.sum.time_s += entry.sum.time_s;
      group.sum.sum.energy_j += entry.sum.energy_j;
      group.sum.sum.waiting_s += entry.sum.waiting_s;
      group.sum.sum.waiting_j += entry.sum.waiting_j;
      group.sum.sum.by_class.add(entry.sum.by_class);
      const double spread_j = entry.spread * entry.sum.energy_j;
      group.variance_j2 += spread_j * spread_j;
    }
  }
  std::vector<ReportRow> rows;
  for (auto& [key, group] : groups) {
    if (group.sum.sum.energy_j > 0) group.sum.spread = std::sqrt(group.variance_j2) / group.sum.sum.energy_j;
    if (key.first.empty()) {
      rows.push_back(row_of({{key.second}, key.second}, group.sum));
      rows.back().path.clear();
    } else {
      rows.push_back(row_of(key, group.sum));
    }
  }
  return rows;
}

// The part of the Ledger that charges the energy of idle devices to what they waited for.

namespace {

bool uses_device(const ProcessNames& names, const std::string& device) {
  return std::ranges::any_of(names.queues, [&](const auto& queue) { return names.device_of(queue.first) == device; });
}

}  // namespace

void Ledger::add_waits(std::uint32_t process, const Activity& activity, double inside) {
  ProcessNames& names = sums_.names(process);
  for (const WaitTally& wait : activity.waits) {
    const ResolvedScope& scope = names.scopes.resolved_scope(wait.scope);
    const Extrapolation all = names.extrapolation_of({activity.begin_ns, activity.end_ns}, scope.is_one_time(), 0);
    const std::string device = names.device_of(wait.queue);
    const auto gpu = energy_.gpus.find(device);
    if (gpu == energy_.gpus.end()) continue;
    const double time_s = seconds(wait.time_ns) * all.weight;
    const auto rate = gpu_attribution_.waiting_rate(device, all.span.begin_ns, all.span.end_ns);
    charge_idle(process, wait, {activity.begin_ns, activity.end_ns}, gpu->second.domain,
                {inside * time_s * rate.time_share, inside * time_s * rate.watts});
  }
}

void Ledger::charge_idle(std::uint32_t process, const WaitTally& wait, TimeSpan span, const std::string& domain,
                         const IdleSum& idle) {
  const ResolvedScope& scope = sums_.names(process).scopes.resolved_scope(wait.scope);
  // Rows of kernels and functions are not scopes.
  const bool has_row = level_ != RowLevel::kernel && level_ != RowLevel::function;
  std::vector<std::string> path = has_row ? path_at_level(process, scope) : std::vector<std::string>();
  IdleSum& sum = idle_[{idle_cause_of(sums_.names(process), wait, span), {path, domain}}];
  sum.time_s += idle.time_s;
  sum.energy_j += idle.energy_j;
  if (path.empty()) return;
  Amount amount;
  amount.waiting_s = idle.time_s;
  amount.waiting_j = idle.energy_j;
  credit(std::move(path), domain, amount, scope, kTimeShareBasis, true);
}

// In untraced steps of light mode the GPU may be idle for longer than in the traced steps that extrapolate to them, for
// instance because a batch came late. Splits that idle energy by the time that the host spent in each scope, which is
// recorded for all steps.
void Ledger::add_unexplained_idle(std::uint32_t process, const Activity& activity) {
  const ProcessNames& names = sums_.names(process);
  const double length_s = seconds(activity.end_ns - activity.begin_ns);
  if (!knows_waiting() || !names.was_light_mode() || activity.scope_tallies.empty() || length_s <= 0) return;
  std::set<std::string> devices;
  for (const auto& [id, queue] : names.queues) devices.insert(names.device_of(id));
  double scopes_s = 0;
  for (const ScopeTally& tally : activity.scope_tallies) {
    if (tally.scope != 0) scopes_s += seconds(tally.wall_ns);
  }
  const double whole_s = std::max(scopes_s, length_s);  // without threads in the root scope
  for (const std::string& device : devices) {
    const auto gpu = energy_.gpus.find(device);
    GpuAttribution::IdleAmount idle = gpu_attribution_.unexplained_between(device, activity.begin_ns, activity.end_ns);
    if (gpu == energy_.gpus.end() || idle.energy_j <= 0) continue;
    const auto users = static_cast<double>(std::ranges::count_if(sums_.processes(), [&](const auto& process_names) {
      return process_names.second.was_light_mode() && uses_device(process_names.second, device);
    }));
    idle = {idle.time_s / users, idle.energy_j / users};
    const auto charge = [&](std::uint32_t scope, double share) {
      const WaitTally wait{.queue = 0, .scope = scope, .kind = WaitKind::host, .count = 1, .time_ns = 0};
      charge_idle(process, wait, {activity.begin_ns, activity.end_ns}, gpu->second.domain,
                  {share * idle.time_s, share * idle.energy_j});
    };
    for (const ScopeTally& tally : activity.scope_tallies) {
      if (tally.scope != 0 && tally.wall_ns > 0) charge(tally.scope, seconds(tally.wall_ns) / whole_s);
    }
    if (scopes_s < whole_s) charge(0, 1 - scopes_s / whole_s);
    IdleSum& explained = explained_by_host_[gpu->second.domain];
    explained.time_s += idle.time_s;
    explained.energy_j += idle.energy_j;
  }
}

std::vector<IdleEntry> Ledger::idle_entries() const {
  std::map<std::pair<IdleCause, Key>, IdleSum> all = idle_;
  const auto add = [&](IdleCause cause, const std::string& device, double time_s, double energy_j) {
    if (energy_j <= 0 && time_s <= 0) return;
    IdleSum& sum = all[{cause, {{}, device}}];
    sum.time_s += time_s;
    sum.energy_j += energy_j;
  };
  for (const GpuAttribution::UnexplainedIdle& idle : gpu_attribution_.unexplained_idle()) {
    const auto explained = explained_by_host_.find(idle.device);
    const IdleSum by_host = explained == explained_by_host_.end() ? IdleSum() : explained->second;
    add(IdleCause::startup, idle.device, idle.before_s, idle.before_j);
    add(IdleCause::unknown, idle.device, std::max(idle.between_s - by_host.time_s, 0.0),
        idle.between_j - by_host.energy_j);
    add(IdleCause::shutdown, idle.device, idle.after_s, idle.after_j);
  }
  if (level_ != RowLevel::kernel) add(IdleCause::unknown, std::string(kCpuDevice), 0, cpu_attribution_.idle_j());
  std::vector<IdleEntry> entries;
  for (const auto& [key, sum] : all) {
    IdleEntry& entry = entries.emplace_back();
    entry.cause = key.first;
    std::tie(entry.path, entry.device) = key.second;
    entry.time_s = sum.time_s;
    entry.energy_j = sum.energy_j;
    entry.in_rows = !entry.path.empty();
    if (const auto interval = gpu_attribution_.idle_interval(entry.device, sum.energy_j))
      std::tie(entry.low_j, entry.high_j) = *interval;
  }
  std::ranges::stable_sort(entries, std::greater(), [](const IdleEntry& entry) { return entry.energy_j.value_or(0); });
  return entries;
}

}  // namespace joulemap::attribution

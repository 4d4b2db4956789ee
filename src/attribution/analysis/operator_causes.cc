// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/operator_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <span>

#include "attribution/analysis/operator_groups.h"
#include "statistics/run_variation.h"

namespace joulemap::attribution {
namespace {

constexpr double kMinGroupEnergyShare = 0.001;    // of the total; smaller differences of groups are ignored
constexpr double kMinCallRatio = 1.5;             // ratio of counts, which are known to a quarter in short recordings
constexpr double kMinUnfusedCallRatio = 1.5;      // the same, of kernels that replace fused ones
constexpr double kMinLongerDurationRatio = 1.05;  // ratio of durations
constexpr double kMinCommonKernelFraction = 0.5;  // common fraction of the energy by kernel
constexpr double kIntervalDegreesOfFreedom = 20;  // of intervals of entries, as in compared_entries.cc
constexpr std::size_t kMaxShortKernelNameLength = 60;  // characters of a kernel's name

// A changed group, from the side that uses less energy to the side that uses more.
struct GroupChange {
  DifferenceEntry* entry = nullptr;
  char costlier_letter = 'B';
  char cheaper_letter = 'A';
  const OperatorGroupContent* costlier_side = nullptr;
  const OperatorGroupContent* cheaper_side = nullptr;
  ComparedEnergy costlier_energy = {};
  ComparedEnergy cheaper_energy = {};
  bool is_one_sided = false;
  std::string_view unit_name;

  const OperatorGroup& group() const { return *entry->group; }
  bool is_on_cpu() const { return entry->device.ends_with("cpu"); }
  bool is_kind(std::string_view kind) const { return group().kind == kind; }
  std::string_view work_unit_name() const { return is_on_cpu() ? "operations" : "kernels"; }
  double energy_difference_j() const { return costlier_energy.energy_j - cheaper_energy.energy_j; }
  double costlier_call_count() const { return costlier_energy.count.value_or(0); }
  double cheaper_call_count() const { return cheaper_energy.count.value_or(0); }
};

bool is_one_of(std::span<const std::string_view> candidate_names, std::string_view name) {
  return std::ranges::find(candidate_names, name) != candidate_names.end();
}

// A kernel's name without its return type, template arguments and parameters.
std::string short_kernel_name(std::string_view kernel) {
  if (kernel.starts_with("void ")) kernel.remove_prefix(5);
  kernel = kernel.substr(0, kernel.find('<'));
  if (!kernel.starts_with('(')) kernel = kernel.substr(0, kernel.find('('));
  return std::string(
      kernel.size() > kMaxShortKernelNameLength ? kernel.substr(kernel.size() - kMaxShortKernelNameLength) : kernel);
}

std::string largest_kernel_name(const OperatorGroupContent& side) {
  return side.kernels.empty() ? std::string("unknown") : short_kernel_name(side.kernels.front().name);
}

std::string format_count(double count) {
  return count < 1 ? fmt::format("{:.2g}", count) : fmt::format("{:.0f}", count);
}

std::string format_phase_suffix(const OperatorGroup& group) {
  return group.phase.empty() ? "" : " (" + group.phase + ")";
}

double common_kernel_fraction(const OperatorGroupContent& x, const OperatorGroupContent& y) {
  double common_fraction = 0;
  for (const OperatorGroupKernel& kernel : x.kernels) {
    const auto matching_kernel = std::ranges::find(y.kernels, kernel.name, &OperatorGroupKernel::name);
    if (matching_kernel != y.kernels.end()) common_fraction += std::min(kernel.share, matching_kernel->share);
  }
  return common_fraction;
}

// Whether both sides ran largely the same code: kernels, or operations on a CPU.
bool has_same_code(const GroupChange& change) {
  if (!change.costlier_side->kernels.empty() && !change.cheaper_side->kernels.empty())
    return common_kernel_fraction(*change.costlier_side, *change.cheaper_side) >= kMinCommonKernelFraction;
  const std::vector<std::string>& costlier_operations = change.costlier_side->operations;
  const std::vector<std::string>& cheaper_operations = change.cheaper_side->operations;
  return costlier_operations.empty() || cheaper_operations.empty() ||
         std::ranges::find(cheaper_operations, costlier_operations.front()) != cheaper_operations.end();
}

std::string describe_call_counts(const GroupChange& change) {
  return fmt::format("{} {} per {} in {} instead of {}", format_count(change.costlier_call_count()),
                     change.is_on_cpu() ? "calls" : "launches", change.unit_name, change.costlier_letter,
                     format_count(change.cheaper_call_count()));
}

// Rules that rest on the energy alone apply beyond the noise only.
bool is_beyond_noise(const DifferenceEntry& entry) {
  return entry.low_j && entry.high_j && (*entry.low_j > 0 || *entry.high_j < 0);
}

// --- Rules. Each returns a cause if it applies.

using OptionalCause = std::optional<OperatorGroupCause>;

OptionalCause explain_waiting(const GroupChange& change) {
  if (!change.is_kind(kWaitingGroupKind) || !is_beyond_noise(*change.entry)) return {};
  return OperatorGroupCause{"waiting", fmt::format("the GPU is idle for longer in {} ({})", change.costlier_letter,
                                                   change.entry->path.back())};
}

OptionalCause explain_recompute(const GroupChange& change) {
  if (change.group().phase != "recompute") return {};
  return OperatorGroupCause{
      "recompute",
      fmt::format("{} runs operations of the forward pass again in the backward pass", change.costlier_letter)};
}

OptionalCause explain_host_copies(const GroupChange& change) {
  if (!change.is_kind("host copy")) return {};
  return OperatorGroupCause{
      "host_copies",
      fmt::format("{} copies more between host and device{}", change.costlier_letter,
                  !change.is_one_sided && change.costlier_call_count() > kMinCallRatio * change.cheaper_call_count()
                      ? ": " + describe_call_counts(change)
                      : std::string())};
}

OptionalCause explain_layout_conversion(const GroupChange& change) {
  if (!change.is_kind("layout conversion")) return {};
  return OperatorGroupCause{"layout", fmt::format("{} converts the memory layout of tensors ({})",
                                                  change.costlier_letter, largest_kernel_name(*change.costlier_side))};
}

OptionalCause explain_unfused_optimizer(const GroupChange& change) {
  if (!change.is_kind("optimizer") || change.costlier_call_count() < kMinUnfusedCallRatio * change.cheaper_call_count())
    return {};
  return OperatorGroupCause{"unfused",
                            fmt::format("{} updates parameters in more, smaller {}: {}", change.costlier_letter,
                                        change.work_unit_name(), describe_call_counts(change))};
}

OptionalCause explain_device_copies(const GroupChange& change) {
  if (!change.is_kind("copy")) return {};
  const std::vector<std::string>& operations = change.costlier_side->operations;
  return OperatorGroupCause{
      "copies", fmt::format("{} copies more within the device ({})", change.costlier_letter,
                            operations.empty() ? largest_kernel_name(*change.costlier_side) : operations.front())};
}

OptionalCause explain_larger_shapes(const GroupChange& change) {
  if (!change.group().has_different_shapes || change.costlier_side->shapes.empty() ||
      change.cheaper_side->shapes.empty())
    return {};
  return OperatorGroupCause{
      "shapes", fmt::format("larger shapes in {}: {} {} instead of {}", change.costlier_letter, change.group().kind,
                            change.costlier_side->shapes.front(), change.cheaper_side->shapes.front())};
}

OptionalCause explain_precision(const GroupChange& change) {
  const std::string& costlier_precision = change.costlier_side->precision;
  const std::string& cheaper_precision = change.cheaper_side->precision;
  if (costlier_precision.empty() || cheaper_precision.empty() || costlier_precision == cheaper_precision) return {};
  return OperatorGroupCause{"precision",
                            fmt::format("{} in {} in {}, in {} in {}", change.group().kind, costlier_precision,
                                        change.costlier_letter, cheaper_precision, change.cheaper_letter)};
}

OptionalCause explain_more_calls(const GroupChange& change) {
  if (change.is_one_sided || !has_same_code(change) ||
      change.costlier_call_count() < kMinCallRatio * change.cheaper_call_count() || change.cheaper_call_count() <= 0)
    return {};
  return OperatorGroupCause{
      "calls", fmt::format("more {} of {}{}: {}", change.is_on_cpu() ? "calls" : "launches", change.group().kind,
                           format_phase_suffix(change.group()), describe_call_counts(change))};
}

OptionalCause explain_different_kernel(const GroupChange& change) {
  if (change.is_one_sided || change.is_kind(kWaitingGroupKind) || has_same_code(change)) return {};
  const auto name = [&](const OperatorGroupContent& side) {
    return change.is_on_cpu() ? side.operations.front() : largest_kernel_name(side);
  };
  return OperatorGroupCause{
      "kernel", fmt::format("another {} for {}: {} in {} instead of {}", change.is_on_cpu() ? "operation" : "kernel",
                            change.group().kind, name(*change.costlier_side), change.costlier_letter,
                            name(*change.cheaper_side))};
}

OptionalCause explain_one_sided_group(const GroupChange& change) {
  if (!change.is_one_sided || change.is_kind(kWaitingGroupKind)) return {};
  return OperatorGroupCause{"extra", fmt::format("only {} runs {}{}", change.costlier_letter, change.group().kind,
                                                 format_phase_suffix(change.group()))};
}

// The same code: it takes longer, or its power is higher. Only the energy shows it, so it must exceed the noise.
OptionalCause explain_duration_or_power(const GroupChange& change) {
  if (!is_beyond_noise(*change.entry) || change.is_kind(kWaitingGroupKind)) return {};
  const double costlier_time_s = change.costlier_energy.time_s.value_or(0);
  const double cheaper_time_s = change.cheaper_energy.time_s.value_or(0);
  if (cheaper_time_s > 0 && costlier_time_s > kMinLongerDurationRatio * cheaper_time_s) {
    return OperatorGroupCause{
        "duration",
        fmt::format("the same {} of {} take {:.0f} % longer in {}", change.work_unit_name(), change.group().kind,
                    100 * (costlier_time_s / cheaper_time_s - 1), change.costlier_letter)};
  }
  return OperatorGroupCause{"power", fmt::format("the same {} of {} use more power in {}", change.work_unit_name(),
                                                 change.group().kind, change.costlier_letter)};
}

constexpr std::array<OptionalCause (*)(const GroupChange&), 12> kCauseRules = {
    explain_waiting,           explain_recompute,        explain_host_copies,     explain_layout_conversion,
    explain_unfused_optimizer, explain_device_copies,    explain_larger_shapes,   explain_precision,
    explain_more_calls,        explain_different_kernel, explain_one_sided_group, explain_duration_or_power};

// --- Fusion concerns several groups: a fused operation on one side, and its parts on the other.

constexpr std::array<std::string_view, 4> kFusedOperationKinds = {"normalization", "attention", "softmax", "loss"};
constexpr std::array<std::string_view, 8> kUnfusedPartKinds = {"elementwise",   "reduction", "softmax", "copy",
                                                               "normalization", "matmul",    "pooling", "other"};
constexpr std::array<std::string_view, 3> kFusedKernelNameParts = {"triton_", "fusion", "multi_tensor"};

bool is_only_on_side(const GroupChange& change, char side) {
  return change.is_one_sided && change.costlier_letter == side;
}

double call_count_on_side(const GroupChange& change, char side) {
  return change.costlier_letter == side ? change.costlier_call_count() : change.cheaper_call_count();
}

const OperatorGroupContent& get_operator_side(const GroupChange& change, char side) {
  return change.costlier_letter == side ? *change.costlier_side : *change.cheaper_side;
}

bool has_fusing_kernel(const OperatorGroupContent& side) {
  return std::ranges::any_of(side.kernels, [](const OperatorGroupKernel& kernel) {
    return std::ranges::any_of(kFusedKernelNameParts,
                               [&](auto part) { return kernel.name.find(part) != std::string::npos; });
  });
}

// Whether the group contains a fused version on side `fused_side`.
bool has_fused_version(const GroupChange& change, char fused_side, char unfused_side) {
  if (is_only_on_side(change, fused_side))
    return is_one_of(kFusedOperationKinds, change.group().kind) ||
           has_fusing_kernel(get_operator_side(change, fused_side));
  if (change.is_one_sided ||
      !(is_one_of(kUnfusedPartKinds, change.group().kind) || is_one_of(kFusedOperationKinds, change.group().kind)))
    return false;
  const bool is_kernel_replaced =
      !has_same_code(change) &&
      call_count_on_side(change, unfused_side) >= kMinUnfusedCallRatio * call_count_on_side(change, fused_side);
  return is_kernel_replaced && !change.is_kind("matmul") && !change.is_kind("copy");
}

bool is_unfused_part(const GroupChange& change, char unfused_side, bool has_fused_attention) {
  if (!is_one_of(kUnfusedPartKinds, change.group().kind)) return false;
  if (change.is_kind("matmul") && !has_fused_attention) return false;
  return change.costlier_letter == unfused_side;
}

// Assigns the cause to the changes of one device and phase, if `unfused_side` runs the parts of what `fused_side` runs
// fused.
void assign_unfused_cause(std::span<GroupChange* const> changes, char fused_side, char unfused_side) {
  std::vector<GroupChange*> fusion_changes;
  bool has_fused_attention = false;
  for (GroupChange* change : changes) {
    if (!has_fused_version(*change, fused_side, unfused_side)) continue;
    fusion_changes.push_back(change);
    has_fused_attention = has_fused_attention || change->is_kind("attention");
  }
  if (fusion_changes.empty()) return;
  for (GroupChange* change : changes) {
    if (std::ranges::find(fusion_changes, change) == fusion_changes.end() &&
        is_unfused_part(*change, unfused_side, has_fused_attention))
      fusion_changes.push_back(change);
  }
  double unfused_call_count = 0;
  double fused_call_count = 0;
  double saved_j = 0;
  std::set<std::string> kinds;
  for (const GroupChange* change : fusion_changes) {
    unfused_call_count += call_count_on_side(*change, unfused_side);
    fused_call_count += call_count_on_side(*change, fused_side);
    saved_j += change->costlier_letter == unfused_side ? change->energy_difference_j() : -change->energy_difference_j();
    kinds.insert(change->group().kind);
  }
  if (unfused_call_count < kMinUnfusedCallRatio * fused_call_count || saved_j <= 0) return;
  const GroupChange& first_change = *fusion_changes.front();
  const std::string fused_count =
      fused_call_count > 0 ? format_count(fused_call_count) + " " : std::string();  // else unknown
  const std::string text =
      fmt::format("{} runs {} {} per {} where {} runs {}fused ones: {}{}", unfused_side,
                  format_count(unfused_call_count), first_change.work_unit_name(), first_change.unit_name, fused_side,
                  fused_count, fmt::join(kinds, ", "), format_phase_suffix(first_change.group()));
  for (GroupChange* change : fusion_changes) change->entry->group->cause = {"unfused", text};
}

// --- A layout concerns several groups, too: the conversions, and other kernels of the same operations.

constexpr std::array<std::string_view, 3> kLayoutDependentKinds = {"convolution", "normalization", "pooling"};

// Assigns the cause to the changes of one device, if one side converts more.
void assign_layout_cause(std::span<GroupChange* const> changes) {
  const GroupChange* largest_layout_change = nullptr;
  for (const GroupChange* change : changes) {
    if (change->is_kind("layout conversion") &&
        (largest_layout_change == nullptr ||
         change->energy_difference_j() > largest_layout_change->energy_difference_j()))
      largest_layout_change = change;
  }
  if (largest_layout_change == nullptr ||
      largest_layout_change->cheaper_call_count() * kMinCallRatio > largest_layout_change->costlier_call_count())
    return;
  const std::string text =
      fmt::format("{} converts the memory layout of tensors around convolutions ({}) and runs kernels of that layout",
                  largest_layout_change->costlier_letter, largest_kernel_name(*largest_layout_change->costlier_side));
  for (GroupChange* change : changes) {
    const bool is_layout_dependent = is_one_of(kLayoutDependentKinds, change->group().kind) && !change->is_one_sided;
    if (change->is_kind("layout conversion") || (is_layout_dependent && !has_same_code(*change)))
      change->entry->group->cause = {"layout", text};
  }
}

// --- All groups.

double energy_or_zero_j(const std::optional<ComparedEnergy>& side) { return side ? side->energy_j : 0; }

double larger_total_j(const RunDifference& difference) {
  return std::max(energy_or_zero_j(difference.total.a), energy_or_zero_j(difference.total.b));
}

std::vector<GroupChange> collect_group_changes(RunDifference& difference) {
  const double min_difference_j = kMinGroupEnergyShare * larger_total_j(difference);
  std::vector<GroupChange> changes;
  for (DifferenceEntry& entry : difference.entries) {
    if (!entry.group || !entry.low_j || std::abs(entry.difference_j.value_or(0)) < min_difference_j) continue;
    const bool is_increase = *entry.difference_j > 0;
    GroupChange& change = changes.emplace_back();
    change.entry = &entry;
    change.costlier_letter = is_increase ? 'B' : 'A';
    change.cheaper_letter = is_increase ? 'A' : 'B';
    change.costlier_side = is_increase ? &entry.group->b : &entry.group->a;
    change.cheaper_side = is_increase ? &entry.group->a : &entry.group->b;
    change.costlier_energy = (is_increase ? entry.b : entry.a).value_or(ComparedEnergy{});
    change.cheaper_energy = (is_increase ? entry.a : entry.b).value_or(ComparedEnergy{});
    change.is_one_sided = !entry.a || !entry.b;
    change.unit_name = difference.per;
  }
  return changes;
}

void assign_causes_across_groups(std::vector<GroupChange>& changes) {
  std::map<std::string, std::vector<GroupChange*>> by_device;
  for (GroupChange& change : changes) by_device[change.entry->device].push_back(&change);
  for (const auto& [device, device_changes] : by_device) assign_layout_cause(device_changes);
  std::map<std::pair<std::string, std::string>, std::vector<GroupChange*>> by_phase;  // device, phase
  for (GroupChange& change : changes) {
    const bool has_own_cause = change.is_kind(kWaitingGroupKind) || change.group().phase == "recompute" ||
                               !change.entry->group->cause.code.empty();
    if (!has_own_cause) by_phase[{change.entry->device, change.group().phase}].push_back(&change);
  }
  for (const auto& [device_and_phase, phase_changes] : by_phase) {
    assign_unfused_cause(phase_changes, 'A', 'B');
    assign_unfused_cause(phase_changes, 'B', 'A');
  }
}

struct CauseEnergySum {
  DifferenceCause cause;
  double energy_a_j = 0;
  double energy_b_j = 0;
  double variance_j2 = 0;  // of half widths of intervals
};

// Errors of groups are independent, except for the variation between runs, which the total contains.
bool is_cause_beyond_noise(const CauseEnergySum& sum, const RunDifference& difference) {
  const DifferenceEntry& total = difference.total;
  const double larger_run_energy_j = larger_total_j(difference);
  const double run_variation_fraction =
      total.low_j && larger_run_energy_j > 0 ? 0.5 * (*total.high_j - *total.low_j) / larger_run_energy_j : 0;
  // Causes are few: their intervals have the level of the total, not that of hundreds of entries.
  const double interval_narrowing_factor =
      statistics::two_sided_t_quantile(difference.interval, kIntervalDegreesOfFreedom) /
      statistics::two_sided_t_quantile(difference.entry_confidence, kIntervalDegreesOfFreedom);
  const double half_width_j = std::max(interval_narrowing_factor * std::sqrt(sum.variance_j2),
                                       run_variation_fraction * std::max(sum.energy_a_j, sum.energy_b_j));
  return std::abs(sum.cause.difference_j) >= std::max(kMinCauseEnergyShare * larger_run_energy_j, half_width_j);
}

std::map<std::string, CauseEnergySum> sum_energies_by_cause(const RunDifference& difference) {
  std::map<std::string, CauseEnergySum> sums;
  for (const DifferenceEntry& entry : difference.entries) {
    if (!entry.group || entry.group->cause.code.empty()) continue;
    CauseEnergySum& sum = sums[entry.group->cause.code];
    DifferenceCause& cause = sum.cause;
    cause.code = entry.group->cause.code;
    cause.difference_j += *entry.difference_j;
    cause.paths.push_back(entry.path);
    if (std::ranges::find(cause.kinds, entry.group->kind) == cause.kinds.end())
      cause.kinds.push_back(entry.group->kind);
    sum.energy_a_j += energy_or_zero_j(entry.a);
    sum.energy_b_j += energy_or_zero_j(entry.b);
    const double half_width_j = 0.5 * (*entry.high_j - *entry.low_j);
    sum.variance_j2 += half_width_j * half_width_j;
  }
  return sums;
}

// Of the largest group that differs in the direction of the sum; entries are sorted by their difference.
std::string find_cause_text(const CauseEnergySum& sum, const RunDifference& difference) {
  for (const DifferenceEntry& entry : difference.entries) {
    if (entry.group && entry.group->cause.code == sum.cause.code && *entry.difference_j * sum.cause.difference_j > 0)
      return entry.group->cause.text;
  }
  return {};
}

// Keeps the causes whose sum exceeds the noise.
void add_significant_causes(RunDifference& difference) {
  std::map<std::string, CauseEnergySum> sums = sum_energies_by_cause(difference);
  std::erase_if(sums, [&](const auto& entry) { return !is_cause_beyond_noise(entry.second, difference); });
  for (auto& [code, sum] : sums) {
    sum.cause.text = find_cause_text(sum, difference);
    difference.causes.push_back(sum.cause);
  }
  for (DifferenceEntry& entry : difference.entries) {
    if (entry.group && !sums.contains(entry.group->cause.code)) entry.group->cause = {};
  }
  const double sign = difference.total.difference_j.value_or(0) < 0 ? -1 : 1;
  std::ranges::stable_sort(difference.causes, std::greater(),
                           [&](const DifferenceCause& cause) { return sign * cause.difference_j; });
}

}  // namespace

void explain_operator_differences(RunDifference& difference) {
  std::vector<GroupChange> changes = collect_group_changes(difference);
  assign_causes_across_groups(changes);
  for (GroupChange& change : changes) {
    if (!change.entry->group->cause.code.empty()) continue;
    for (const auto rule : kCauseRules) {
      if (OptionalCause cause = rule(change)) {
        change.entry->group->cause = *std::move(cause);
        break;
      }
    }
  }
  add_significant_causes(difference);
}

}  // namespace joulemap::attribution

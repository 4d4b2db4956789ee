// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/cause_evidence.h"

#include <algorithm>

#include "attribution/gpu/kernel_power_hierarchy.h"
#include "base/clock.h"
#include "base/demangle.h"
#include "scopes/cause_names.h"

namespace joulemap::attribution {
namespace {

// Smaller counts are rounding errors of proportional splits.
constexpr double kMinLaunches = 1e-6;

// Kernels that PyTorch instantiates from general templates: only the functor shows that they compute nothing.
bool is_plain_copy(const std::string& demangled_name) {
  return demangled_name.find("direct_copy_kernel") != std::string::npos;
}
bool is_plain_fill(const std::string& demangled_name) {
  return demangled_name.find("FillFunctor") != std::string::npos;
}

EnergyCauseClass class_of(GpuActivityKind kind) {
  if (kind == GpuActivityKind::computes) return EnergyCauseClass::compute;
  return kind == GpuActivityKind::exchanges ? EnergyCauseClass::synchronization : EnergyCauseClass::memory;
}

}  // namespace

GpuActivityKind activity_kind_of(const KernelClass& kernel) {
  if (kernel.kind == KernelKind::copy)
    return kernel.name.find("DtoH") != std::string::npos ? GpuActivityKind::reads_back : GpuActivityKind::copies;
  if (kernel.kind == KernelKind::fill) return GpuActivityKind::fills;
  if (kernel.kind == KernelKind::graph) return GpuActivityKind::computes;
  if (kernel.name.find("nccl") != std::string::npos) return GpuActivityKind::exchanges;
  const std::string name = demangled(kernel.name);
  if (is_plain_fill(name)) return GpuActivityKind::fills;
  const bool is_layout = family_of({KernelKind::kernel, kernel.name, 1}) == "layout";
  return is_layout || is_plain_copy(name) ? GpuActivityKind::moves : GpuActivityKind::computes;
}

void CauseEvidence::add(const CauseEvidence& other, double share) {
  worked_s += share * other.worked_s;
  waited_s += share * other.waited_s;
  unclassified_s += share * other.unclassified_s;
  gpu_s.add(other.gpu_s, share);
  launches += share * other.launches;
  copies += share * other.copies;
  read_backs += share * other.read_backs;
}

CauseEvidence CauseEvidence::unclassified() const {
  CauseEvidence seen;
  seen.unclassified_s = worked_s + waited_s + unclassified_s;
  seen.gpu_s = gpu_s;
  return seen;
}

CauseEvidence evidence_of(const ScopeTally& tally) {
  CauseEvidence evidence;
  const double wall_s = seconds(tally.wall_ns);
  evidence.worked_s = std::clamp(seconds(tally.cpu_ns + tally.helper_threads_ns), 0.0, wall_s);
  evidence.waited_s = wall_s - evidence.worked_s;
  return evidence;
}

CauseEvidence evidence_of(GpuActivityKind kind, double time_s, double count) {
  CauseEvidence evidence;
  evidence.gpu_s[class_of(kind)] = time_s;
  evidence.launches = count;
  if (kind == GpuActivityKind::copies) evidence.copies = count;
  if (kind == GpuActivityKind::reads_back) evidence.read_backs = count;
  return evidence;
}

// The median over rows that launch no copies, so that it contains no waiting.
void RowCauses::finish() {
  std::vector<double> of_one_s;
  for (const auto& [path, all] : by_path_) {
    if (all.launches < kMinLaunches || all.copies + all.read_backs > 0 || all.worked_s <= 0) continue;
    of_one_s.push_back(all.worked_s / all.launches);
  }
  if (of_one_s.empty()) return;
  const auto median = of_one_s.begin() + static_cast<std::ptrdiff_t>(of_one_s.size() / 2);
  std::nth_element(of_one_s.begin(), median, of_one_s.end());
  usual_launch_s_ = *median;
}

std::optional<EnergyCause> RowCauses::gpu_cause(const CauseEvidence& evidence) const {
  if (evidence.gpu_s.sum() <= 0) return std::nullopt;
  return EnergyCause{evidence.gpu_s.largest_class(), CauseBasis::ledger, evidence.gpu_s};
}

std::optional<EnergyCause> RowCauses::cpu_cause(const Path& path, const CauseEvidence& evidence) const {
  if (evidence.worked_s + evidence.waited_s + evidence.unclassified_s <= 0) return std::nullopt;
  AmountByCause cause_s;
  cause_s[EnergyCauseClass::synchronization] = std::max(evidence.waited_s, 0.0);
  AmountByCause named_s;
  const std::optional<EnergyCauseClass> name =
      has_function_names_ ? scopes::cause_class_from_name(path.back()) : std::nullopt;
  named_s[name.value_or(EnergyCauseClass::compute)] = evidence.unclassified_s;
  const auto known = by_path_.find(path);
  const CauseEvidence all = known == by_path_.end() ? CauseEvidence() : known->second;
  if (all.launches > kMinLaunches) {
    const bool has_copies = all.read_backs > 0 || 2 * all.copies > all.launches;
    const double launching_s =
        has_copies ? std::min(evidence.worked_s, usual_launch_s_ * all.launches) : evidence.worked_s;
    cause_s[EnergyCauseClass::launch] = launching_s;
    cause_s[all.read_backs > 0 ? EnergyCauseClass::synchronization : EnergyCauseClass::memory] +=
        evidence.worked_s - launching_s;
  } else {
    const bool is_name_only_evidence = name || !has_host_evidence_;
    (is_name_only_evidence ? named_s : cause_s)[name.value_or(EnergyCauseClass::compute)] += evidence.worked_s;
  }
  EnergyCause cause;
  cause.times_s.add(cause_s);
  cause.times_s.add(named_s);
  cause.largest_class = cause.times_s.largest_class();
  cause.basis = named_s[cause.largest_class] > cause_s[cause.largest_class] ? CauseBasis::name : CauseBasis::ledger;
  return cause;
}

}  // namespace joulemap::attribution

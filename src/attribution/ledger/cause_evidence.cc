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
constexpr double kMinLaunchCount = 1e-6;

// Kernels that PyTorch instantiates from general templates: only the functor shows that they compute nothing.
bool is_plain_copy(const std::string& demangled_name) {
  return demangled_name.find("direct_copy_kernel") != std::string::npos;
}
bool is_plain_fill(const std::string& demangled_name) {
  return demangled_name.find("FillFunctor") != std::string::npos;
}

EnergyCauseClass cause_class_of_activity(GpuActivityKind kind) {
  if (kind == GpuActivityKind::compute) return EnergyCauseClass::compute;
  return kind == GpuActivityKind::collective_communication ? EnergyCauseClass::synchronization
                                                           : EnergyCauseClass::memory;
}

}  // namespace

GpuActivityKind classify_gpu_activity(const KernelClass& kernel) {
  if (kernel.kind == KernelKind::copy)
    return kernel.name.find("DtoH") != std::string::npos ? GpuActivityKind::device_to_host_copy
                                                         : GpuActivityKind::memcpy_except_to_host;
  if (kernel.kind == KernelKind::fill) return GpuActivityKind::fill;
  if (kernel.kind == KernelKind::graph) return GpuActivityKind::compute;
  if (kernel.name.find("nccl") != std::string::npos) return GpuActivityKind::collective_communication;
  const std::string name = demangle(kernel.name);
  if (is_plain_fill(name)) return GpuActivityKind::fill;
  const bool is_layout = kernel_family({KernelKind::kernel, kernel.name, 1}) == "layout";
  return is_layout || is_plain_copy(name) ? GpuActivityKind::on_device_copy : GpuActivityKind::compute;
}

void CauseEvidence::add(const CauseEvidence& other_evidence, double share) {
  cpu_work_s += share * other_evidence.cpu_work_s;
  cpu_wait_s += share * other_evidence.cpu_wait_s;
  unclassified_s += share * other_evidence.unclassified_s;
  gpu_s.add(other_evidence.gpu_s, share);
  launch_count += share * other_evidence.launch_count;
  copy_count += share * other_evidence.copy_count;
  read_back_count += share * other_evidence.read_back_count;
}

CauseEvidence CauseEvidence::with_unclassified_cpu_time() const {
  CauseEvidence unclassified_evidence;
  unclassified_evidence.unclassified_s = cpu_work_s + cpu_wait_s + unclassified_s;
  unclassified_evidence.gpu_s = gpu_s;
  return unclassified_evidence;
}

CauseEvidence make_cause_evidence(const ScopeTally& tally) {
  CauseEvidence evidence;
  const double wall_s = seconds(tally.wall_ns);
  evidence.cpu_work_s = std::clamp(seconds(tally.cpu_ns + tally.helper_threads_cpu_ns), 0.0, wall_s);
  evidence.cpu_wait_s = wall_s - evidence.cpu_work_s;
  return evidence;
}

CauseEvidence make_cause_evidence(GpuActivityKind kind, double time_s, double count) {
  CauseEvidence evidence;
  evidence.gpu_s[cause_class_of_activity(kind)] = time_s;
  evidence.launch_count = count;
  if (kind == GpuActivityKind::memcpy_except_to_host) evidence.copy_count = count;
  if (kind == GpuActivityKind::device_to_host_copy) evidence.read_back_count = count;
  return evidence;
}

// The median over rows that launch no copies, so that it contains no waiting.
void RowCauses::finish() {
  std::vector<double> launch_times_s;
  for (const auto& [path, path_evidence] : evidence_by_path_) {
    if (path_evidence.launch_count < kMinLaunchCount || path_evidence.copy_count + path_evidence.read_back_count > 0 ||
        path_evidence.cpu_work_s <= 0)
      continue;
    launch_times_s.push_back(path_evidence.cpu_work_s / path_evidence.launch_count);
  }
  if (launch_times_s.empty()) return;
  const auto median = launch_times_s.begin() + static_cast<std::ptrdiff_t>(launch_times_s.size() / 2);
  std::nth_element(launch_times_s.begin(), median, launch_times_s.end());
  median_launch_s_ = *median;
}

std::optional<EnergyCause> RowCauses::gpu_cause(const CauseEvidence& evidence) const {
  if (evidence.gpu_s.sum() <= 0) return std::nullopt;
  return EnergyCause{evidence.gpu_s.largest_class(), CauseBasis::ledger, evidence.gpu_s};
}

std::optional<EnergyCause> RowCauses::cpu_cause(const RowPath& path, const CauseEvidence& evidence) const {
  if (evidence.cpu_work_s + evidence.cpu_wait_s + evidence.unclassified_s <= 0) return std::nullopt;
  AmountByCause time_by_cause_s;
  time_by_cause_s[EnergyCauseClass::synchronization] = std::max(evidence.cpu_wait_s, 0.0);
  AmountByCause name_based_time_s;
  const std::optional<EnergyCauseClass> name =
      has_function_names_ ? scopes::cause_class_from_name(path.back()) : std::nullopt;
  name_based_time_s[name.value_or(EnergyCauseClass::compute)] = evidence.unclassified_s;
  const auto evidence_entry = evidence_by_path_.find(path);
  const CauseEvidence path_evidence =
      evidence_entry == evidence_by_path_.end() ? CauseEvidence() : evidence_entry->second;
  if (path_evidence.launch_count > kMinLaunchCount) {
    const bool has_copies =
        path_evidence.read_back_count > 0 || 2 * path_evidence.copy_count > path_evidence.launch_count;
    const double launching_s =
        has_copies ? std::min(evidence.cpu_work_s, median_launch_s_ * path_evidence.launch_count) : evidence.cpu_work_s;
    time_by_cause_s[EnergyCauseClass::launch] = launching_s;
    time_by_cause_s[path_evidence.read_back_count > 0 ? EnergyCauseClass::synchronization : EnergyCauseClass::memory] +=
        evidence.cpu_work_s - launching_s;
  } else {
    const bool is_name_only_evidence = name || !has_host_evidence_;
    (is_name_only_evidence ? name_based_time_s : time_by_cause_s)[name.value_or(EnergyCauseClass::compute)] +=
        evidence.cpu_work_s;
  }
  EnergyCause cause;
  cause.times_s.add(time_by_cause_s);
  cause.times_s.add(name_based_time_s);
  cause.largest_class = cause.times_s.largest_class();
  cause.basis = name_based_time_s[cause.largest_class] > time_by_cause_s[cause.largest_class] ? CauseBasis::name
                                                                                              : CauseBasis::ledger;
  return cause;
}

}  // namespace joulemap::attribution

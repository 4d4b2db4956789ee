// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/other_processes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace joulemap::sensors::nvml {
namespace {

constexpr std::int64_t kUtilizationPeriod_ns = 2 * kNanosecondsPerSecond;
// An H200 takes a utilization sample about every 0.2 s: a span shorter than this may contain none.
constexpr std::int64_t kMinLookBack_ns = kNanosecondsPerSecond / 2;
// Period of classifying an unchanged list again, unless all its processes are measured: another process may have joined
// the recording, or a measured process may have begun to use CUDA.
constexpr std::int64_t kClassifyPeriod_ns = 10 * kNanosecondsPerSecond;
constexpr unsigned kAllTime_percent = 100;

std::string pid_list_text(const OtherProcesses::FoundProcesses& found) {
  std::string text;
  for (std::size_t i = 0; i < std::min(found.count, found.first.size()); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", found.first[i]);
  return found.count > found.first.size() ? text + ", ..." : text;
}

Diagnostic gpu_shared_diagnostic(const std::string& who, std::size_t count) {
  return {"gpu_shared", count, who + ": its energy includes theirs", "joulemap record separates it, as background"};
}

Diagnostic utilization_unreadable_diagnostic(const std::string& who, std::size_t count, Return status,
                                             const NvmlDevice& device) {
  return {"gpu_shared_untold", count,
          fmt::format("{}: its energy includes theirs, and their utilization cannot be read: {}", who,
                      status == Return::function_not_found ? "this driver does not report it"
                                                           : device.library().describe(status)),
          "to measure one program, give it the GPU exclusively"};
}

Diagnostic owner_unknown_diagnostic(const std::string& label, const OtherProcesses::FoundProcesses& unknown) {
  return {"gpu_owner_unknown", unknown.count,
          fmt::format("NVML lists {} process{} on {} with PIDs of another PID namespace ({}): whether they belong to "
                      "the command is unknown, and their energy is not separated",
                      unknown.count, unknown.count == 1 ? "" : "es", label, pid_list_text(unknown)),
          "share the host's PID namespace with the container (docker run --pid=host), or give the program the GPU "
          "exclusively"};
}

}  // namespace

std::optional<ProcessOwner> OtherProcesses::ListedProcesses::owner_of(unsigned pid) const noexcept {
  const auto end = pids.begin() + static_cast<std::ptrdiff_t>(count);
  const auto found = std::find(pids.begin(), end, pid);
  if (found == end) return std::nullopt;
  return owners[static_cast<std::size_t>(found - pids.begin())];
}

bool OtherProcesses::ListedProcesses::has(ProcessOwner owner) const noexcept {
  const auto end = owners.begin() + static_cast<std::ptrdiff_t>(count);
  return std::find(owners.begin(), end, owner) != end;
}

bool OtherProcesses::is_due(std::int64_t now_ns, bool soon) const noexcept {
  return now_ns - last_ns_ >= (soon ? kMinLookBack_ns : kUtilizationPeriod_ns);
}

const OtherProcesses::ListedProcesses& OtherProcesses::list(const NvmlDevice& device, std::int64_t now_ns) noexcept {
  std::array<ProcessInfo, kMaxProcesses> processes;
  const NvmlDevice::ProcessReadResult read = device.read_processes(processes);
  ListedProcesses now;
  now.is_readable = read.status == Return::success;
  for (const ProcessInfo& process : std::span(processes).first(read.count)) {
    // In containers, NVML was observed to list a pid twice.
    const bool is_repeated = process.pid != 0 && now.owner_of(process.pid).has_value();
    if (!is_repeated) now.pids[now.count++] = process.pid;
  }
  const bool is_unchanged = classified_ns_ != 0 && now.pids == listed_.pids && now.count == listed_.count;
  const bool are_all_ours = !listed_.has(ProcessOwner::unknown) && !listed_.has(ProcessOwner::other);
  const bool is_settled = are_all_ours || now_ns - classified_ns_ < kClassifyPeriod_ns;
  if (is_unchanged && is_settled && now.is_readable == listed_.is_readable) return listed_;
  owners_.classify(std::span(now.pids).first(now.count), now.owners);
  listed_ = now;
  classified_ns_ = now_ns;
  return listed_;
}

RawReadResult OtherProcesses::sum_other_utilization(std::span<const ProcessUtilization> uses) noexcept {
  unsigned sum = 0;
  unsigned unknown = 0;
  const auto before = unlisted_;
  const auto before_end = before.begin() + static_cast<std::ptrdiff_t>(unlisted_count_);
  unlisted_count_ = 0;
  for (const ProcessUtilization& use : uses) {
    const std::optional<ProcessOwner> owner = listed_.owner_of(use.pid);
    if (owner == ProcessOwner::measured) nvml_pids_match_proc_ = nvml_pids_match_proc_ || owners_.exists(use.pid);
    if (owner == ProcessOwner::other) sum += std::min(use.sm, kAllTime_percent);
    if (owner == ProcessOwner::unknown) unknown += use.sm;
    if (owner || owners_.is_initial_pid_namespace() || owners_.exists(use.pid))
      continue;  // an unlisted process of the same namespace may be a measured one that has ended
    if (unlisted_count_ < unlisted_.size()) unlisted_[unlisted_count_++] = use.pid;
    if (nvml_pids_match_proc_ && std::find(before.begin(), before_end, use.pid) != before_end)
      sum += std::min(use.sm, kAllTime_percent);
  }
  if (unknown > 0) return {Return::unknown, 0};
  return {Return::success, std::min(sum, kAllTime_percent)};
}

std::optional<RawReadResult> OtherProcesses::read_utilization(const NvmlDevice& device) noexcept {
  const std::int64_t now_ns = monotonic_ns();
  const std::int64_t look_back_ns = std::clamp(now_ns - last_ns_, kMinLookBack_ns, 2 * kUtilizationPeriod_ns);
  last_ns_ = now_ns;
  const ListedProcesses& listed = list(device, now_ns);
  if (!listed.is_readable) return std::nullopt;
  if (listed.count == 0 && !owners_.is_initial_pid_namespace()) {
    // A measured process uses CUDA and the GPU is busy, but the list is empty: it may omit other processes, too.
    const RawReadResult busy = device.read(GpuMetric::gpu_utilization);
    const bool is_busy = busy.status == Return::success && busy.raw > 0;
    if (is_busy && owners_.uses_cuda().value_or(false)) return RawReadResult{Return::unknown, 0};
  }
  const bool may_hide = !owners_.is_initial_pid_namespace() && listed.has(ProcessOwner::measured);
  if (!may_hide && !listed.has(ProcessOwner::other) && !listed.has(ProcessOwner::unknown))
    return RawReadResult{Return::success, 0};
  std::array<ProcessUtilization, kMaxProcesses> uses;
  const auto since_us = static_cast<unsigned long long>((unix_ns() - look_back_ns) / kNanosecondsPerMicrosecond);
  const NvmlDevice::ProcessReadResult read = device.read_process_utilization(since_us, uses);
  if (read.status == Return::success) return sum_other_utilization(std::span(uses).first(read.count));
  const bool matters = listed.has(ProcessOwner::other) || listed.has(ProcessOwner::unknown);
  return RawReadResult{matters ? read.status : Return::success, 0};
}

OtherProcesses::FoundProcesses OtherProcesses::find(const NvmlDevice& device, ProcessOwner owner) noexcept {
  FoundProcesses found;
  const ListedProcesses& listed = list(device, monotonic_ns());
  for (std::size_t i = 0; i < listed.count; ++i) {
    if (listed.owners[i] != owner) continue;
    if (found.count < found.first.size()) found.first[found.count] = listed.pids[i];
    ++found.count;
  }
  return found;
}

std::optional<OtherProcesses> find_other_processes(const NvmlDevice& device, MeasuredProcessSet own) {
  std::array<ProcessInfo, ProcessClassifier::kMaxListedProcesses> processes;
  const NvmlDevice::ProcessReadResult read = device.read_processes(processes);
  if (read.status != Return::success) return std::nullopt;
  std::vector<unsigned> listed;
  for (const ProcessInfo& process : std::span(processes).first(read.count)) listed.push_back(process.pid);
  return OtherProcesses(ProcessClassifier(std::move(own), listed));
}

Diagnostics describe(OtherProcesses others, const std::string& label, const NvmlDevice& device) {
  Diagnostics diagnostics;
  const OtherProcesses::FoundProcesses found = others.find(device, ProcessOwner::other);
  const OtherProcesses::FoundProcesses unknown = others.find(device, ProcessOwner::unknown);
  if (found.count > 0) {
    const Return status = others.read_utilization(device).value_or(RawReadResult{}).status;
    const std::string who =
        found.count == 1 ? fmt::format("another process uses {} (pid {})", label, pid_list_text(found))
                         : fmt::format("{} other processes use {} (pids {})", found.count, label, pid_list_text(found));
    const bool is_readable = status == Return::success || unknown.count > 0;
    diagnostics.add(is_readable ? gpu_shared_diagnostic(who, found.count)
                                : utilization_unreadable_diagnostic(who, found.count, status, device));
  }
  if (unknown.count > 0) diagnostics.add(owner_unknown_diagnostic(label, unknown));
  return diagnostics;
}

}  // namespace joulemap::sensors::nvml

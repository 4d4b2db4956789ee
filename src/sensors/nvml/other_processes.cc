// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/other_processes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace joulemap::sensors::nvml {
namespace {

constexpr std::int64_t kUtilizationReadPeriod_ns = 2 * kNanosecondsPerSecond;
// An H200 takes a utilization sample about every 0.2 s: a span shorter than this may contain none.
constexpr std::int64_t kMinUtilizationSpan_ns = kNanosecondsPerSecond / 2;
// Period of classifying an unchanged list again, unless all its processes are measured: another process may have joined
// the recording, or a measured process may have begun to use CUDA.
constexpr std::int64_t kReclassifyPeriod_ns = 10 * kNanosecondsPerSecond;
constexpr unsigned kMaxUtilization_percent = 100;

std::string format_pid_list(const OtherProcesses::FoundProcesses& found) {
  std::string text;
  for (std::size_t i = 0; i < std::min(found.count, found.first_pids.size()); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", found.first_pids[i]);
  return found.count > found.first_pids.size() ? text + ", ..." : text;
}

Diagnostic make_gpu_shared_diagnostic(const std::string& sharing_summary, std::size_t count) {
  return {"gpu_shared", count, sharing_summary + ": its energy includes theirs",
          "joulemap record separates it, as background"};
}

Diagnostic make_utilization_unreadable_diagnostic(const std::string& sharing_summary, std::size_t count,
                                                  NvmlReturn status, const NvmlDevice& device) {
  return {"gpu_shared_untold", count,
          fmt::format("{}: its energy includes theirs, and their utilization cannot be read: {}", sharing_summary,
                      status == NvmlReturn::function_not_found ? "this driver does not report it"
                                                               : device.library().describe_status(status)),
          "to measure one program, give it the GPU exclusively"};
}

Diagnostic make_owner_unknown_diagnostic(const std::string& label, const OtherProcesses::FoundProcesses& unknown) {
  return {"gpu_owner_unknown", unknown.count,
          fmt::format("NVML lists {} process{} on {} with PIDs of another PID namespace ({}): whether they belong to "
                      "the command is unknown, and their energy is not separated",
                      unknown.count, unknown.count == 1 ? "" : "es", label, format_pid_list(unknown)),
          "share the host's PID namespace with the container (docker run --pid=host), or give the program the GPU "
          "exclusively"};
}

}  // namespace

std::optional<ProcessOwner> OtherProcesses::ListedProcesses::owner_of(unsigned pid) const noexcept {
  const auto end = pids.begin() + static_cast<std::ptrdiff_t>(pid_count);
  const auto matching_pid = std::find(pids.begin(), end, pid);
  if (matching_pid == end) return std::nullopt;
  return owners[static_cast<std::size_t>(matching_pid - pids.begin())];
}

bool OtherProcesses::ListedProcesses::has_process_of(ProcessOwner owner) const noexcept {
  const auto end = owners.begin() + static_cast<std::ptrdiff_t>(pid_count);
  return std::find(owners.begin(), end, owner) != end;
}

bool OtherProcesses::is_read_due(std::int64_t now_ns, bool is_immediate) const noexcept {
  return now_ns - last_read_ns_ >= (is_immediate ? kMinUtilizationSpan_ns : kUtilizationReadPeriod_ns);
}

const OtherProcesses::ListedProcesses& OtherProcesses::update_process_list(const NvmlDevice& device,
                                                                           std::int64_t now_ns) noexcept {
  std::array<ProcessInfo, kMaxProcesses> processes;
  const NvmlDevice::ProcessReadResult read = device.read_processes(processes);
  ListedProcesses current_processes;
  current_processes.is_readable = read.status == NvmlReturn::success;
  for (const ProcessInfo& process : std::span(processes).first(read.count)) {
    // In containers, NVML was observed to list a pid twice.
    const bool is_repeated = process.pid != 0 && current_processes.owner_of(process.pid).has_value();
    if (!is_repeated) current_processes.pids[current_processes.pid_count++] = process.pid;
  }
  const bool is_unchanged = last_classified_ns_ != 0 && current_processes.pids == process_list_.pids &&
                            current_processes.pid_count == process_list_.pid_count;
  const bool are_all_measured =
      !process_list_.has_process_of(ProcessOwner::unknown) && !process_list_.has_process_of(ProcessOwner::other);
  const bool is_settled = are_all_measured || now_ns - last_classified_ns_ < kReclassifyPeriod_ns;
  if (is_unchanged && is_settled && current_processes.is_readable == process_list_.is_readable) return process_list_;
  classifier_.classify(std::span(current_processes.pids).first(current_processes.pid_count), current_processes.owners);
  process_list_ = current_processes;
  last_classified_ns_ = now_ns;
  return process_list_;
}

RawReadResult OtherProcesses::sum_other_process_utilization(
    std::span<const ProcessUtilization> process_utilizations) noexcept {
  unsigned sum = 0;
  unsigned unknown = 0;
  const auto previous_pids = unlisted_pids_;
  const auto previous_pids_end = previous_pids.begin() + static_cast<std::ptrdiff_t>(unlisted_pid_count_);
  unlisted_pid_count_ = 0;
  for (const ProcessUtilization& utilization : process_utilizations) {
    const std::optional<ProcessOwner> owner = process_list_.owner_of(utilization.pid);
    if (owner == ProcessOwner::measured)
      nvml_pids_match_proc_ = nvml_pids_match_proc_ || classifier_.does_process_exist(utilization.pid);
    if (owner == ProcessOwner::other) sum += std::min(utilization.sm, kMaxUtilization_percent);
    if (owner == ProcessOwner::unknown) unknown += utilization.sm;
    if (owner || classifier_.is_initial_pid_namespace() || classifier_.does_process_exist(utilization.pid))
      continue;  // an unlisted process of the same namespace may be a measured one that has ended
    if (unlisted_pid_count_ < unlisted_pids_.size()) unlisted_pids_[unlisted_pid_count_++] = utilization.pid;
    if (nvml_pids_match_proc_ &&
        std::find(previous_pids.begin(), previous_pids_end, utilization.pid) != previous_pids_end)
      sum += std::min(utilization.sm, kMaxUtilization_percent);
  }
  if (unknown > 0) return {NvmlReturn::unknown, 0};
  return {NvmlReturn::success, std::min(sum, kMaxUtilization_percent)};
}

std::optional<RawReadResult> OtherProcesses::read_utilization(const NvmlDevice& device) noexcept {
  const std::int64_t now_ns = monotonic_ns();
  const std::int64_t look_back_ns =
      std::clamp(now_ns - last_read_ns_, kMinUtilizationSpan_ns, 2 * kUtilizationReadPeriod_ns);
  last_read_ns_ = now_ns;
  const ListedProcesses& listed = update_process_list(device, now_ns);
  if (!listed.is_readable) return std::nullopt;
  if (listed.pid_count == 0 && !classifier_.is_initial_pid_namespace()) {
    // A measured process uses CUDA and the GPU is busy, but the list is empty: it may omit other processes, too.
    const RawReadResult busy = device.read(GpuMetric::gpu_utilization);
    const bool is_busy = busy.status == NvmlReturn::success && busy.raw > 0;
    if (is_busy && classifier_.uses_cuda().value_or(false)) return RawReadResult{NvmlReturn::unknown, 0};
  }
  const bool may_hide_processes =
      !classifier_.is_initial_pid_namespace() && listed.has_process_of(ProcessOwner::measured);
  if (!may_hide_processes && !listed.has_process_of(ProcessOwner::other) &&
      !listed.has_process_of(ProcessOwner::unknown))
    return RawReadResult{NvmlReturn::success, 0};
  std::array<ProcessUtilization, kMaxProcesses> process_utilizations;
  const auto since_us = static_cast<unsigned long long>((unix_ns() - look_back_ns) / kNanosecondsPerMicrosecond);
  const NvmlDevice::ProcessReadResult read = device.read_process_utilization(since_us, process_utilizations);
  if (read.status == NvmlReturn::success)
    return sum_other_process_utilization(std::span(process_utilizations).first(read.count));
  const bool has_unmeasured_process =
      listed.has_process_of(ProcessOwner::other) || listed.has_process_of(ProcessOwner::unknown);
  return RawReadResult{has_unmeasured_process ? read.status : NvmlReturn::success, 0};
}

OtherProcesses::FoundProcesses OtherProcesses::find_processes_of_owner(const NvmlDevice& device,
                                                                       ProcessOwner owner) noexcept {
  FoundProcesses found;
  const ListedProcesses& listed = update_process_list(device, monotonic_ns());
  for (std::size_t i = 0; i < listed.pid_count; ++i) {
    if (listed.owners[i] != owner) continue;
    if (found.count < found.first_pids.size()) found.first_pids[found.count] = listed.pids[i];
    ++found.count;
  }
  return found;
}

std::optional<OtherProcesses> find_other_processes(const NvmlDevice& device, MeasuredProcessSet measured_processes) {
  std::array<ProcessInfo, ProcessClassifier::kMaxListedProcesses> processes;
  const NvmlDevice::ProcessReadResult read = device.read_processes(processes);
  if (read.status != NvmlReturn::success) return std::nullopt;
  std::vector<unsigned> listed_pids;
  for (const ProcessInfo& process : std::span(processes).first(read.count)) listed_pids.push_back(process.pid);
  return OtherProcesses(ProcessClassifier(std::move(measured_processes), listed_pids));
}

Diagnostics describe_other_processes(OtherProcesses others, const std::string& label, const NvmlDevice& device) {
  Diagnostics diagnostics;
  const OtherProcesses::FoundProcesses found = others.find_processes_of_owner(device, ProcessOwner::other);
  const OtherProcesses::FoundProcesses unknown = others.find_processes_of_owner(device, ProcessOwner::unknown);
  if (found.count > 0) {
    const NvmlReturn status = others.read_utilization(device).value_or(RawReadResult{}).status;
    const std::string sharing_summary =
        found.count == 1
            ? fmt::format("another process uses {} (pid {})", label, format_pid_list(found))
            : fmt::format("{} other processes use {} (pids {})", found.count, label, format_pid_list(found));
    const bool is_readable = status == NvmlReturn::success || unknown.count > 0;
    diagnostics.add(is_readable ? make_gpu_shared_diagnostic(sharing_summary, found.count)
                                : make_utilization_unreadable_diagnostic(sharing_summary, found.count, status, device));
  }
  if (unknown.count > 0) diagnostics.add(make_owner_unknown_diagnostic(label, unknown));
  return diagnostics;
}

}  // namespace joulemap::sensors::nvml

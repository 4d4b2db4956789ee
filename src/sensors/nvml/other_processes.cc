// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/other_processes.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/process_tree.h"

namespace joulemap::sensors::nvml {
namespace {

constexpr std::size_t kMostProcesses = 128;
constexpr std::size_t kMostNamed = 4;
constexpr std::int64_t kPeriod_ns = 2 * kNanosecondsPerSecond;
// An H200 takes a sample every 0.2 s or so: less time than this may hold none.
constexpr std::int64_t kShortestLook_ns = kNanosecondsPerSecond / 2;
constexpr unsigned kAll = 100;  // percent

// Whether this very process may be among those that NVML lists. One without CUDA is not.
bool may_use_cuda() {
  void* const loaded = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (loaded != nullptr) ::dlclose(loaded);
  return loaded != nullptr;
}

}  // namespace

bool OtherProcesses::is_other(unsigned pid) const noexcept {
  if (knows_numbers_) return pid != 0 && !descends_from(static_cast<pid_t>(pid), ::getpid());
  return std::find(before_.begin(), before_.end(), pid) != before_.end();
}

bool OtherProcesses::is_due(std::int64_t now_ns, bool soon) const noexcept {
  return now_ns - last_ns_ >= (soon ? kShortestLook_ns : kPeriod_ns);
}

std::optional<RawRead> OtherProcesses::read_utilization(const NvmlDevice& device) noexcept {
  // Where numbers mean nothing and nobody was there, nobody will ever be told from the command's own.
  if (!knows_numbers_ && before_.empty()) return std::nullopt;
  const std::int64_t now_ns = monotonic_ns();
  const std::int64_t look_back_ns = std::clamp(now_ns - last_ns_, kShortestLook_ns, 2 * kPeriod_ns);
  last_ns_ = now_ns;
  std::array<ProcessInfo, kMostProcesses> processes;
  const NvmlDevice::ProcessRead there = device.read_processes(processes);
  if (there.status != Return::success) return std::nullopt;
  const auto others_end = std::partition(processes.begin(), processes.begin() + there.count,
                                         [&](const ProcessInfo& process) { return is_other(process.pid); });
  if (others_end == processes.begin()) return RawRead{Return::success, 0};
  std::array<ProcessUtilization, kMostProcesses> uses;
  const auto since_us = static_cast<unsigned long long>((unix_ns() - look_back_ns) / kNanosecondsPerMicrosecond);
  const NvmlDevice::ProcessRead read = device.read_process_utilization(since_us, uses);
  if (read.status != Return::success) return RawRead{read.status, 0};
  unsigned sum = 0;
  for (const ProcessUtilization& use : std::span(uses).first(read.count)) {
    // Who has gone meanwhile may have been ours.
    const bool counts =
        std::any_of(processes.begin(), others_end, [&](const ProcessInfo& process) { return process.pid == use.pid; });
    if (counts) sum += std::min(use.sm, kAll);
  }
  return RawRead{Return::success, std::min(sum, kAll)};
}

std::optional<OtherProcesses> find_other_processes(const NvmlDevice& device) {
  const bool knows_numbers = numbers_processes_as_drivers_do();
  std::array<ProcessInfo, kMostProcesses> processes;
  const NvmlDevice::ProcessRead read = device.read_processes(processes);
  if (read.status != Return::success) return std::nullopt;
  if (!knows_numbers && may_use_cuda()) return OtherProcesses();
  std::vector<unsigned> others;
  for (const ProcessInfo& process : std::span(processes).first(read.count)) {
    const bool is_ours = knows_numbers && descends_from(static_cast<pid_t>(process.pid), ::getpid());
    if (process.pid != 0 && !is_ours) others.push_back(process.pid);
  }
  return OtherProcesses(std::move(others), knows_numbers);
}

std::optional<Diagnostic> describe(OtherProcesses others, const std::string& label, const NvmlDevice& device) {
  const std::vector<unsigned>& pids = others.before();
  if (pids.empty()) return std::nullopt;
  const Return utilization = others.read_utilization(device).value_or(RawRead{}).status;
  std::string named;
  for (std::size_t i = 0; i < std::min(pids.size(), kMostNamed); ++i)
    named += fmt::format("{}{}", i == 0 ? "" : ", ", pids[i]);
  if (pids.size() > kMostNamed) named += ", ...";
  const std::string who = pids.size() == 1
                              ? fmt::format("another process is on {} (pid {})", label, named)
                              : fmt::format("{} other processes are on {} (pids {})", pids.size(), label, named);
  if (utilization == Return::success) {
    return Diagnostic{"gpu_shared", pids.size(), who + ": its energy is theirs, too",
                      "joulemap record tells them apart, as background"};
  }
  return Diagnostic{"gpu_shared_untold", pids.size(),
                    fmt::format("{}: its energy is theirs, too, and how much they use cannot be told: {}", who,
                                utilization == Return::function_not_found ? "this driver does not say"
                                                                          : device.library().describe(utilization)),
                    "for the energy of one program, let it have the GPU alone"};
}

}  // namespace joulemap::sensors::nvml

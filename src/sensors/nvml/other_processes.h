// SPDX-License-Identifier: Apache-2.0
//
// OtherProcesses: how much of a GPU's time is used by processes that are not measured, because a GPU's energy is that
// of all processes on it. About once a second NVML reports the fraction of recent time in which each process had a
// kernel running. process_classifier.h decides which processes are measured.
//
// In a container, a driver that lists the container's pids omits processes outside of the container, but reports their
// utilization under the host's pids. So a pid with utilization counts as another process if it is not listed, does not
// exist in /proc and was seen in two reads in a row; but only once NVML has reported a measured process under its pid
// in /proc.
//
// Costs on an H200 with driver 580: the list takes 0.1 to 0.2 ms, the utilization 1.5 to 3 ms of CPU time. So the
// utilization is read only where it can matter.
//
// A value type; created when the sensor is opened, then used by the sensor's thread, where it neither allocates nor
// locks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "model/diagnostics.h"
#include "sensors/nvml/nvml_device.h"
#include "sensors/nvml/process_classifier.h"

namespace joulemap::sensors::nvml {

class OtherProcesses {
 public:
  explicit OtherProcesses(ProcessClassifier owners) : classifier_(std::move(owners)) {}

  // Whether the utilization should be read: with `is_immediate` after 0.5 s, when a new value can exist, otherwise
  // after 2 s.
  bool is_read_due(std::int64_t now_ns, bool is_immediate) const noexcept;
  // Percent of the time since the last read in which other processes had a kernel running; the sum over processes, at
  // most 100. The status is an error where their utilization cannot be read, or where the owner of a busy process is
  // unknown. None where NVML's list of processes is not readable.
  std::optional<RawReadResult> read_utilization(const NvmlDevice& device) noexcept;

  // The processes of an owner that are on the GPU now, for diagnostics.
  struct FoundProcesses {
    std::array<unsigned, 4> first_pids{};  // up to four of the pids
    std::size_t count = 0;
  };
  FoundProcesses find_processes_of_owner(const NvmlDevice& device, ProcessOwner owner) noexcept;

 private:
  static constexpr std::size_t kMaxProcesses = ProcessClassifier::kMaxListedProcesses;
  struct ListedProcesses {
    std::array<unsigned, kMaxProcesses> pids{};
    std::array<ProcessOwner, kMaxProcesses> owners{};
    std::size_t pid_count = 0;
    bool is_readable = false;

    std::optional<ProcessOwner> owner_of(unsigned pid) const noexcept;
    bool has_process_of(ProcessOwner owner) const noexcept;
  };
  const ListedProcesses& update_process_list(const NvmlDevice& device, std::int64_t now_ns) noexcept;
  RawReadResult sum_other_process_utilization(std::span<const ProcessUtilization> process_utilizations) noexcept;

  ProcessClassifier classifier_;
  ListedProcesses process_list_;
  std::int64_t last_classified_ns_ = 0;
  bool nvml_pids_match_proc_ = false;  // NVML has reported the utilization of a measured process under its pid in
                                       // /proc
  std::array<unsigned, 16> unlisted_pids_{};  // pids with utilization in the last read that NVML does not list
  std::size_t unlisted_pid_count_ = 0;
  std::int64_t last_read_ns_ = 0;
};

// None where NVML does not list processes.
std::optional<OtherProcesses> find_other_processes(const NvmlDevice& device, MeasuredProcessSet measured_processes);

// Diagnostics on the processes that use the GPU now. `label`: name of the GPU.
Diagnostics describe_other_processes(OtherProcesses others, const std::string& label, const NvmlDevice& device);

}  // namespace joulemap::sensors::nvml

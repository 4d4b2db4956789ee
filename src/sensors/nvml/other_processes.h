// SPDX-License-Identifier: Apache-2.0
//
// OtherProcesses: how much of a GPU's time processes use that are not measured. A GPU's energy is that of all processes
// on it. About once a second NVML reports the fraction of recent time in which each process had a kernel running.
// process_classifier.h decides which processes are measured.
//
// A driver that uses our container's pids omits processes outside of it from its list, and reports their use under the
// host's pids. A pid counts as another process if it is never listed, does not exist in /proc and was seen twice in a
// row; but only once the same read has shown a measured process under its own pid.
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
  explicit OtherProcesses(ProcessClassifier owners) : owners_(std::move(owners)) {}

  // `soon`: due as soon as a new value can exist; otherwise when it is worth its cost.
  bool is_due(std::int64_t now_ns, bool soon) const noexcept;
  // Percent of the time since the last read in which other processes had a kernel running; their sum, at most 100. An
  // error where their utilization cannot be read, or where the owner of a busy process is unknown. Nothing where NVML
  // lists no processes to us.
  std::optional<RawReadResult> read_utilization(const NvmlDevice& device) noexcept;

  // The processes present now, for diagnostics.
  struct FoundProcesses {
    std::array<unsigned, 4> first{};  // the first pids
    std::size_t count = 0;
  };
  FoundProcesses find(const NvmlDevice& device, ProcessOwner owner) noexcept;

 private:
  static constexpr std::size_t kMaxProcesses = ProcessClassifier::kMaxListedProcesses;
  struct ListedProcesses {
    std::array<unsigned, kMaxProcesses> pids{};
    std::array<ProcessOwner, kMaxProcesses> owners{};
    std::size_t count = 0;
    bool is_readable = false;

    std::optional<ProcessOwner> owner_of(unsigned pid) const noexcept;
    bool has(ProcessOwner owner) const noexcept;
  };
  const ListedProcesses& list(const NvmlDevice& device, std::int64_t now_ns) noexcept;
  RawReadResult sum_other_utilization(std::span<const ProcessUtilization> uses) noexcept;

  ProcessClassifier owners_;
  ListedProcesses listed_;
  std::int64_t classified_ns_ = 0;
  bool nvml_pids_match_proc_ = false;    // NVML has reported the utilization of a measured process under its pid in
                                         // /proc
  std::array<unsigned, 16> unlisted_{};  // pids of the last read that were not listed
  std::size_t unlisted_count_ = 0;
  std::int64_t last_ns_ = 0;
};

// Nothing where NVML does not list processes.
std::optional<OtherProcesses> find_other_processes(const NvmlDevice& device, MeasuredProcessSet own);

// Diagnostics on the processes that use the GPU now. `label`: name of the GPU.
Diagnostics describe(OtherProcesses others, const std::string& label, const NvmlDevice& device);

}  // namespace joulemap::sensors::nvml

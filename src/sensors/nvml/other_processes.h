// SPDX-License-Identifier: Apache-2.0
//
// OtherProcesses: how much of a GPU's time processes use that are not measured. A GPU's energy is that of all processes on
// it; NVML shows for what share of the last moments each had a kernel running, once a second or so. process_owners.h
// decides whose a process is.
//
// A driver that numbers processes as our container does leaves those outside of it out of its list, and shows their use
// under the host's numbers. Numbers that are never listed, name nothing in /proc and were seen twice in a row are other
// processes; but only once the same read has shown a process of ours by its own number.
//
// Costs, H200 with driver 580: the list takes 0.1 to 0.2 ms, the use 1.5 to 3 ms of CPU time. So the use is read only
// where it can matter.
//
// A value; made when the sensor is opened, then used by the sensor's thread, where it neither allocates nor locks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "model/diagnostics.h"
#include "sensors/nvml/nvml_device.h"
#include "sensors/nvml/process_owners.h"

namespace joulemap::sensors::nvml {

class OtherProcesses {
 public:
  explicit OtherProcesses(ProcessOwners owners) : owners_(std::move(owners)) {}

  // `soon`: as soon as a new value can exist, else when it is worth its cost.
  bool is_due(std::int64_t now_ns, bool soon) const noexcept;
  // Percent of the time since the last read in which other processes had a kernel running; their sum, at most 100. A failure
  // where their use cannot be read, or where it is unknown whose a busy process is. Nothing where NVML lists no processes
  // to us.
  std::optional<RawRead> read_utilization(const NvmlDevice& device) noexcept;

  // Those that are there now, for diagnostics.
  struct Found {
    std::array<unsigned, 4> first{};  // of their numbers
    std::size_t count = 0;
  };
  Found find(const NvmlDevice& device, Owner owner) noexcept;

 private:
  static constexpr std::size_t kMost = ProcessOwners::kMostProcesses;
  struct Listed {
    std::array<unsigned, kMost> pids{};
    std::array<Owner, kMost> owners{};
    std::size_t count = 0;
    bool is_readable = false;

    std::optional<Owner> owner_of(unsigned pid) const noexcept;
    bool has(Owner owner) const noexcept;
  };
  const Listed& list(const NvmlDevice& device, std::int64_t now_ns) noexcept;
  RawRead sum_up(std::span<const ProcessUtilization> uses) noexcept;

  ProcessOwners owners_;
  Listed listed_;
  std::int64_t judged_ns_ = 0;
  bool is_numbered_as_here_ = false;     // NVML has shown the use of a process of ours under its number in /proc
  std::array<unsigned, 16> unlisted_{};  // numbers of the last read that were in no list
  std::size_t unlisted_count_ = 0;
  std::int64_t last_ns_ = 0;
};

// Nothing where NVML does not list processes.
std::optional<OtherProcesses> find_other_processes(const NvmlDevice& device, OwnProcesses own);

// What there is to say about the processes on the GPU now. `label`: of the GPU.
Diagnostics describe(OtherProcesses others, const std::string& label, const NvmlDevice& device);

}  // namespace joulemap::sensors::nvml

// SPDX-License-Identifier: Apache-2.0
//
// OtherProcesses: who besides the measured program is on a GPU, and how much of its time they use. A GPU's energy is that of
// all of them together; NVML tells what share of the last moments each process had a kernel running, once a second or so.
//
// Ours are this process and its descendants: a recorder's command, or the program that measures itself. In a container NVML
// numbers processes as the host does, and a number says nothing here. There, others are those that were on the GPU before
// the command was started; whoever comes later may be the command's, and nothing is guessed.
//
// Costs, H200 with driver 580: who is there 0.1 to 0.2 ms, what they use 1.5 to 3 ms of CPU time. So that is asked for only
// while there are others.
//
// A value; found when the sensor is opened, then used by the sensor's thread, where it neither allocates nor locks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/diagnostics.h"
#include "sensors/nvml/nvml_device.h"

namespace joulemap::sensors::nvml {

class OtherProcesses {
 public:
  // `before`: those that were there. `knows_numbers`: NVML numbers processes as we do.
  explicit OtherProcesses(std::vector<unsigned> before = {}, bool knows_numbers = false)
      : before_(std::move(before)), knows_numbers_(knows_numbers) {}

  const std::vector<unsigned>& before() const { return before_; }
  bool is_other(unsigned pid) const noexcept;
  // `soon`: as soon as there can be news, else when it is worth its cost.
  bool is_due(std::int64_t now_ns, bool soon) const noexcept;
  // Percent of the time since the last read in which they had a kernel running; added up, 100 at most. A failure where
  // they are there and their use cannot be read; nothing where nobody says whether they are.
  std::optional<RawRead> read_utilization(const NvmlDevice& device) noexcept;

 private:
  std::vector<unsigned> before_;
  bool knows_numbers_;
  std::int64_t last_ns_ = 0;
};

// Looks who is on the GPU now. Nothing where NVML does not say.
std::optional<OtherProcesses> find_other_processes(const NvmlDevice& device);

// What there is to say about those that are there now: that they are, and whether their use can be told.
// `label`: of the GPU.
std::optional<Diagnostic> describe(OtherProcesses others, const std::string& label, const NvmlDevice& device);

}  // namespace joulemap::sensors::nvml

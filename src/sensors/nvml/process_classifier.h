// SPDX-License-Identifier: Apache-2.0
//
// ProcessClassifier: classifies the processes that NVML lists on a GPU as ours (measured), another's, or unknown.
//
// In the initial pid namespace NVML uses the pids of /proc. In others (containers) older drivers list the host's pids,
// which do not exist in our /proc or, by chance, belong to another process. Newer drivers list pids of our namespace
// and omit processes outside of it; sandboxes list 0, or one pid for all. So there a pid counts only if it identifies
// (by NSpid) a process that uses CUDA, which has /dev/nvidia-uvm open. Pids that match none are classified by
// elimination:
//
// - listed before any of our processes used CUDA: another's;
// - otherwise ours, if there are as many such pids as measured processes that use CUDA and are not listed by their
// pids,
//   or if there is one such pid for several such processes;
// - otherwise unknown. Unknown never counts as another's: our own energy must not become background.
//
// The server of CUDA MPS runs the kernels of its clients: it is ours where no client is another's, otherwise unknown.
//
// classify() allocates nothing; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sensors/measured_process_set.h"

namespace joulemap::sensors::nvml {

enum class ProcessOwner : std::uint8_t { measured, other, unknown };

class ProcessClassifier {
 public:
  static constexpr std::size_t kMaxListedProcesses = 128;

  // `listed_pids`: pids that NVML lists now, before the measurement begins.
  ProcessClassifier(MeasuredProcessSet measured_processes, std::span<const unsigned> listed_pids);

  void classify(std::span<const unsigned> listed_pids, std::span<ProcessOwner> owners) noexcept;

  // True if NVML's pids are those of /proc with any driver.
  bool is_initial_pid_namespace() const { return is_initial_pid_namespace_; }
  // Whether a measured process uses CUDA; none where a measured process denies access to its open files.
  std::optional<bool> uses_cuda() noexcept;
  // Whether a process with that pid exists in /proc.
  bool does_process_exist(unsigned number) const noexcept;

 private:
  struct CudaProcess {
    pid_t pid = 0;
    NamespacePids namespace_pids{};
    bool is_measured = false;
    bool is_listed_by_nvml = false;
  };
  struct CudaProcesses {
    std::array<CudaProcess, kMaxListedProcesses> processes{};
    std::size_t count = 0;
    bool has_unreadable_process = false;  // at least one measured process denies access to its open files
  };
  CudaProcesses find_cuda_processes() noexcept;
  ProcessOwner owner_of_pid(unsigned number) noexcept;
  void classify_by_pid(std::span<const unsigned> listed_pids, std::span<ProcessOwner> owners) noexcept;
  void classify_by_elimination(std::span<const unsigned> listed_pids, std::span<ProcessOwner> owners) noexcept;
  void classify_mps_servers(std::span<const unsigned> listed_pids, std::span<ProcessOwner> owners) const noexcept;
  std::size_t count_unlisted_processes(std::span<const CudaProcess> cuda_processes) const noexcept;
  bool is_mps_server(unsigned number) const noexcept;
  bool is_known_unmeasured_process(unsigned number) const noexcept;

  MeasuredProcessSet measured_processes_;
  bool is_initial_pid_namespace_;
  std::vector<unsigned> known_other_pids_;  // classified as another's by elimination
};

}  // namespace joulemap::sensors::nvml

// SPDX-License-Identifier: Apache-2.0
//
// ProcessOwners: whose the processes are that NVML lists on a GPU: ours, another's, or unknown.
//
// In the first pid namespace NVML numbers processes as /proc does. In others (containers) older drivers list the host's
// numbers, which name nothing in our /proc or, by chance, another process; newer ones list numbers of our namespace and
// leave out processes outside of it; sandboxes list 0, or one number for all. So there a number counts only if it names
// (by NSpid) a process that uses CUDA, which has /dev/nvidia-uvm open. Numbers that name none are found by elimination:
//
// - listed before any of our processes used CUDA: another's;
// - as many as our processes that use CUDA and are not listed by their numbers, or one of several such: ours;
// - else unknown. Unknown is never another's: our own energy must not become background.
//
// The server of CUDA MPS works for its clients: it is ours where no client is another's, else unknown.
//
// judge() allocates nothing; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sensors/own_processes.h"

namespace joulemap::sensors::nvml {

enum class Owner : std::uint8_t { ours, another, unknown };

class ProcessOwners {
 public:
  static constexpr std::size_t kMostProcesses = 128;

  // `listed`: by NVML now, before the measurement begins.
  ProcessOwners(OwnProcesses own, std::span<const unsigned> listed);

  void judge(std::span<const unsigned> listed, std::span<Owner> owners) noexcept;

  // Whether NVML's numbers are those of /proc whatever the driver.
  bool is_first_namespace() const { return is_first_namespace_; }
  // Whether one of our processes uses CUDA; nothing where that cannot be seen.
  std::optional<bool> uses_cuda() noexcept;
  // Whether a process of that number exists in /proc.
  bool exists(unsigned number) const noexcept;

 private:
  struct CudaProcess {
    pid_t pid = 0;
    NamespaceNumbers numbers{};
    bool is_ours = false;
    bool is_listed = false;
  };
  struct CudaProcesses {
    std::array<CudaProcess, kMostProcesses> all{};
    std::size_t count = 0;
    bool hides_some = false;  // a process of ours whose open files may not be read
  };
  CudaProcesses find_cuda_processes() noexcept;
  Owner owner_by_number(unsigned number) noexcept;
  void judge_by_numbers(std::span<const unsigned> listed, std::span<Owner> owners) noexcept;
  void judge_by_elimination(std::span<const unsigned> listed, std::span<Owner> owners) noexcept;
  void judge_servers(std::span<const unsigned> listed, std::span<Owner> owners) const noexcept;
  std::size_t count_unlisted(std::span<const CudaProcess> known) const noexcept;
  bool is_server(unsigned number) const noexcept;
  bool is_stranger(unsigned number) const noexcept;

  OwnProcesses own_;
  bool is_first_namespace_;
  std::vector<unsigned> strangers_;  // known by elimination
};

}  // namespace joulemap::sensors::nvml

// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/process_classifier.h"

#include <dlfcn.h>

#include <algorithm>
#include <string_view>

namespace joulemap::sensors::nvml {
namespace {

// Every process that has initialized CUDA has this file open; one that only uses NVML does not.
constexpr std::string_view kCudaDeviceFile = "/nvidia-uvm";
// nvidia-cuda-mps-server, truncated to the kernel's limit of process names.
constexpr std::string_view kMpsServerName = "nvidia-cuda-mps";

// Whether this process has loaded CUDA, so that NVML may list it.
bool has_this_process_loaded_cuda() {
  void* const cuda_library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (cuda_library != nullptr) ::dlclose(cuda_library);
  return cuda_library != nullptr;
}

bool contains_pid(const NamespacePids& numbers, unsigned number) noexcept {
  return number != 0 && std::find(numbers.begin(), numbers.end(), static_cast<pid_t>(number)) != numbers.end();
}

}  // namespace

ProcessClassifier::ProcessClassifier(MeasuredProcessSet measured_processes, std::span<const unsigned> listed_pids)
    : measured_processes_(std::move(measured_processes)),
      is_initial_pid_namespace_(is_in_initial_pid_namespace(measured_processes_.proc_path())) {
  if (is_initial_pid_namespace_ || has_this_process_loaded_cuda() || uses_cuda().value_or(true)) return;
  for (const unsigned number : listed_pids) {
    if (number != 0) known_other_pids_.push_back(number);
  }
}

bool ProcessClassifier::is_mps_server(unsigned number) const noexcept {
  const ProgramName name = program_name_of(static_cast<pid_t>(number), measured_processes_.proc_path());
  return std::string_view(name.data()) == kMpsServerName;
}

bool ProcessClassifier::is_known_unmeasured_process(unsigned number) const noexcept {
  return std::find(known_other_pids_.begin(), known_other_pids_.end(), number) != known_other_pids_.end();
}

bool ProcessClassifier::does_process_exist(unsigned number) const noexcept {
  return read_start_ticks(static_cast<pid_t>(number), measured_processes_.proc_path()).has_value();
}

ProcessClassifier::CudaProcesses ProcessClassifier::find_cuda_processes() noexcept {
  CudaProcesses cuda_processes;
  NumericDirectoryEntries processes(measured_processes_.proc_path());
  while (const std::optional<int> pid = processes.next()) {
    const std::optional<bool> has_cuda_file = has_open_file(*pid, "", kCudaDeviceFile, measured_processes_.proc_path());
    if (has_cuda_file && !*has_cuda_file) continue;
    const bool is_measured_process = measured_processes_.contains(*pid);
    if (!has_cuda_file) {
      cuda_processes.has_unreadable_process = cuda_processes.has_unreadable_process || is_measured_process;
    } else if (cuda_processes.count < cuda_processes.processes.size()) {
      cuda_processes.processes[cuda_processes.count++] = {
          *pid, namespace_pids_of(*pid, measured_processes_.proc_path()), is_measured_process};
    }
  }
  return cuda_processes;
}

std::optional<bool> ProcessClassifier::uses_cuda() noexcept {
  const CudaProcesses cuda_processes = find_cuda_processes();
  const auto begin = cuda_processes.processes.begin();
  const bool has_measured_process =
      std::any_of(begin, begin + cuda_processes.count, [](const CudaProcess& process) { return process.is_measured; });
  if (!has_measured_process && cuda_processes.has_unreadable_process) return std::nullopt;
  return has_measured_process;
}

ProcessOwner ProcessClassifier::owner_of_pid(unsigned number) noexcept {
  if (number == 0) return ProcessOwner::unknown;
  return measured_processes_.contains(static_cast<pid_t>(number)) ? ProcessOwner::measured : ProcessOwner::other;
}

void ProcessClassifier::classify_by_pid(std::span<const unsigned> listed_pids,
                                        std::span<ProcessOwner> owners) noexcept {
  for (std::size_t i = 0; i < listed_pids.size(); ++i) owners[i] = owner_of_pid(listed_pids[i]);
}

void ProcessClassifier::classify_mps_servers(std::span<const unsigned> listed_pids,
                                             std::span<ProcessOwner> owners) const noexcept {
  bool has_other_client = false;
  for (std::size_t i = 0; i < listed_pids.size(); ++i)
    has_other_client = has_other_client || (owners[i] == ProcessOwner::other && !is_mps_server(listed_pids[i]));
  for (std::size_t i = 0; i < listed_pids.size(); ++i) {
    if (owners[i] == ProcessOwner::other && is_mps_server(listed_pids[i]))
      owners[i] = has_other_client ? ProcessOwner::unknown : ProcessOwner::measured;
  }
}

void ProcessClassifier::classify_by_elimination(std::span<const unsigned> listed_pids,
                                                std::span<ProcessOwner> owners) noexcept {
  CudaProcesses processes = find_cuda_processes();
  const std::span cuda_processes = std::span(processes.processes).first(processes.count);
  std::array<unsigned, kMaxListedProcesses> unmatched_pids{};
  std::size_t unmatched_pid_count = 0;
  for (std::size_t i = 0; i < listed_pids.size(); ++i) {
    const auto matching_process =
        std::find_if(cuda_processes.begin(), cuda_processes.end(),
                     [&](const CudaProcess& process) { return contains_pid(process.namespace_pids, listed_pids[i]); });
    owners[i] = is_known_unmeasured_process(listed_pids[i]) ? ProcessOwner::other : ProcessOwner::unknown;
    if (matching_process != cuda_processes.end()) {
      matching_process->is_listed_by_nvml = true;
      owners[i] = matching_process->is_measured ? ProcessOwner::measured : ProcessOwner::other;
    } else if (owners[i] == ProcessOwner::unknown) {
      const auto end = unmatched_pids.begin() + static_cast<std::ptrdiff_t>(unmatched_pid_count);
      const bool is_new = listed_pids[i] == 0 || std::find(unmatched_pids.begin(), end, listed_pids[i]) == end;
      if (is_new) unmatched_pids[unmatched_pid_count++] = listed_pids[i];
    }
  }
  const std::size_t unlisted_measured_count = count_unlisted_processes(cuda_processes);
  const bool are_all_measured =
      unmatched_pid_count == unlisted_measured_count || (unmatched_pid_count == 1 && unlisted_measured_count > 1);
  if (!are_all_measured) return;
  std::replace(owners.begin(), owners.begin() + static_cast<std::ptrdiff_t>(listed_pids.size()), ProcessOwner::unknown,
               ProcessOwner::measured);
}

// Number of measured CUDA processes that NVML does not list by pid. Forked children of another one do not count: they
// inherit the open file but cannot use CUDA.
std::size_t ProcessClassifier::count_unlisted_processes(std::span<const CudaProcess> cuda_processes) const noexcept {
  std::size_t count = 0;
  for (const CudaProcess& process : cuda_processes) {
    if (!process.is_measured || process.is_listed_by_nvml) continue;
    const std::optional<pid_t> parent = read_parent_pid(process.pid, measured_processes_.proc_path());
    const bool is_inherited =
        std::any_of(cuda_processes.begin(), cuda_processes.end(), [&](const CudaProcess& candidate_parent) {
          return parent == candidate_parent.pid && candidate_parent.is_measured &&
                 is_fork_of_parent(process.pid, measured_processes_.proc_path());
        });
    if (!is_inherited) ++count;
  }
  return count;
}

void ProcessClassifier::classify(std::span<const unsigned> listed_pids, std::span<ProcessOwner> owners) noexcept {
  if (is_initial_pid_namespace_) {
    classify_by_pid(listed_pids, owners);
  } else {
    classify_by_elimination(listed_pids, owners);
  }
  classify_mps_servers(listed_pids, owners);
}

}  // namespace joulemap::sensors::nvml

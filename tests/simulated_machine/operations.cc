// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <numeric>
#include <sstream>

#include "base/file_descriptor.h"
#include "base/small_file.h"

namespace joulemap::simulated {
namespace {

constexpr std::size_t kSlotCount = 64;
constexpr std::size_t kPageBytes = kSlotCount * 2 * sizeof(std::uint32_t);

// Another process may write it at any time.
std::uint32_t load_relaxed(const std::uint32_t& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }

}  // namespace

Result<std::vector<OperationKind>> parse_operation_kinds(const std::string& text) {
  std::vector<OperationKind> kinds;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    OperationKind kind;
    if (!(words >> kind.name >> kind.power >> kind.memory) || kind.power < 0 || kind.memory < 0) {
      return Error{ErrorCode::usage, "an operation is told as NAME POWER MEMORY, not as: " + line, {}};
    }
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

Operations::Operations(std::vector<OperationKind> kinds, const std::uint32_t* page)
    : operation_kinds_(std::move(kinds)), page_(page) {
  operation_kinds_.push_back({"other", 1, 1});
  cpu_s_.resize(operation_kinds_.size());
  energies_.resize(operation_kinds_.size() + 1);
}

Result<Operations> Operations::open(const std::string& operation_kinds_path, const std::string& operation_page_path) {
  const Result<std::string> text = read_small_file(operation_kinds_path);
  if (!text) return text.error();
  Result<std::vector<OperationKind>> kinds = parse_operation_kinds(*text);
  if (!kinds) return std::move(kinds).error();
  const FileDescriptor file(::open(operation_page_path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return system_error("open", operation_page_path, errno);
  void* const mapped_page = ::mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapped_page == MAP_FAILED) return system_error("map", operation_page_path, errno);
  return Operations(std::move(*kinds), static_cast<const std::uint32_t*>(mapped_page));
}

std::size_t Operations::find_operation(pid_t pid) const {
  if (page_ == nullptr) return other();
  for (std::size_t slot = 0; slot < kSlotCount; ++slot) {
    if (load_relaxed(page_[2 * slot]) != static_cast<std::uint32_t>(pid)) continue;
    return std::min<std::size_t>(load_relaxed(page_[2 * slot + 1]), other());
  }
  return other();
}

void Operations::update(const std::vector<ProcessCharge>& charges) {
  std::fill(cpu_s_.begin(), cpu_s_.end(), 0.0);
  for (const ProcessCharge& charge : charges) cpu_s_[find_operation(charge.pid)] += charge.cpu_s;
}

LoadFactors Operations::factors() const {
  const double total_cpu_s = std::accumulate(cpu_s_.begin(), cpu_s_.end(), 0.0);
  if (total_cpu_s <= 0) return {};
  LoadFactors mean{0, 0};
  for (std::size_t i = 0; i < operation_kinds_.size(); ++i) {
    mean.power += operation_kinds_[i].power * cpu_s_[i] / total_cpu_s;
    mean.memory += operation_kinds_[i].memory * cpu_s_[i] / total_cpu_s;
  }
  return mean;
}

void Operations::attribute_energy(const MachinePower& power, double duration_s) {
  const double total_cpu_s = std::accumulate(cpu_s_.begin(), cpu_s_.end(), 0.0);
  const LoadFactors mean = factors();
  double total_power_w = 0;
  double dynamic_memory_w = 0;  // above idle
  for (const SocketPower& socket : power.sockets) {
    total_power_w += socket.package_w + socket.dram_w;
    dynamic_memory_w += socket.dram_dynamic_w;
  }
  const double idle_j = (total_power_w - power.dynamic_w - dynamic_memory_w) * duration_s;
  const double active = std::min(total_cpu_s / duration_s, 1.0);
  energies_.back().energy_j += idle_j * (1 - active);
  for (std::size_t i = 0; total_cpu_s > 0 && i < operation_kinds_.size(); ++i) {
    const double share = cpu_s_[i] / total_cpu_s;
    double watts = 0;
    if (mean.power > 0) watts += power.dynamic_w * operation_kinds_[i].power / mean.power;
    if (mean.memory > 0) watts += dynamic_memory_w * operation_kinds_[i].memory / mean.memory;
    energies_[i].cpu_s += cpu_s_[i];
    energies_[i].dynamic_j += watts * share * duration_s;
    energies_[i].energy_j += watts * share * duration_s + idle_j * active * share;
  }
}

std::vector<std::string> Operations::names() const {
  std::vector<std::string> names;
  for (const OperationKind& kind : operation_kinds_) names.push_back(kind.name);
  names.emplace_back("idle");
  return names;
}

}  // namespace joulemap::simulated

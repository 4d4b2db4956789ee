// SPDX-License-Identifier: Apache-2.0
#include "base/process_tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>

#include "base/file_descriptor.h"

namespace joulemap {
namespace {

// Deeper than any tree that a person made; a ring, which a reused number can pretend, must end.
constexpr int kDeepest = 64;
// The first namespace of processes has a number that is part of the kernel's interface (PROC_PID_INIT_INO).
constexpr std::string_view kFirstNamespace = "pid:[4026531836]";

}  // namespace

std::optional<pid_t> parse_parent(std::string_view proc_pid_stat) noexcept {
  // The name may contain anything, parentheses included: after the last one come " S 123 ...".
  const std::size_t name_end = proc_pid_stat.rfind(')');
  if (name_end == std::string_view::npos || name_end + 4 >= proc_pid_stat.size()) return std::nullopt;
  const std::string_view rest = proc_pid_stat.substr(name_end + 4);
  pid_t parent = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), parent);
  if (error != std::errc() || parent < 0) return std::nullopt;
  return parent;
}

std::optional<pid_t> parent_of(pid_t pid) noexcept {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(pid));
  const FileDescriptor file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return std::nullopt;
  std::array<char, 512> text{};
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size <= 0) return std::nullopt;
  return parse_parent({text.data(), static_cast<std::size_t>(size)});
}

bool descends_from(pid_t pid, pid_t ancestor) noexcept {
  for (int generation = 0; generation < kDeepest && pid > 0; ++generation) {
    if (pid == ancestor) return true;
    const std::optional<pid_t> parent = parent_of(pid);
    if (!parent) return false;
    pid = *parent;
  }
  return false;
}

bool numbers_processes_as_drivers_do() noexcept {
  std::array<char, 64> target{};
  const ssize_t size = ::readlink("/proc/self/ns/pid", target.data(), target.size());
  return size > 0 && std::string_view(target.data(), static_cast<std::size_t>(size)) == kFirstNamespace;
}

}  // namespace joulemap

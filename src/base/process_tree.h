// SPDX-License-Identifier: Apache-2.0
//
// What /proc shows of processes: parents, identity, open files, environment. Any thread; allocates nothing, so that a
// sampling thread may ask. `proc` is another folder in tests.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/file_descriptor.h"

namespace joulemap {

inline constexpr const char* kProc = "/proc";

// From the text of /proc/PID/stat, or from the file itself. Nothing when the process is gone.
std::optional<pid_t> parse_parent(std::string_view proc_pid_stat) noexcept;
std::optional<pid_t> parent_of(pid_t pid, const char* proc = kProc) noexcept;

// `pid` is `ancestor`, or was started by it or by one of its descendants. A process that is gone descends from nobody.
bool descends_from(pid_t pid, pid_t ancestor, const char* proc = kProc) noexcept;

// When it was started, in ticks since the boot. Number and start identify a process: numbers are reused.
std::optional<std::uint64_t> parse_start_ticks(std::string_view proc_pid_stat) noexcept;
std::optional<std::uint64_t> start_ticks_of(pid_t pid, const char* proc = kProc) noexcept;

// Whether it was forked from its parent and has executed no program since: the kernel copies the address of a program's
// arguments at a fork and chooses a new one at an exec. false where addresses may not be read.
bool is_fork_of_parent(pid_t pid, const char* proc = kProc) noexcept;

// The number of this process in `proc`. Differs from getpid() where `proc` belongs to an outer pid namespace.
std::optional<pid_t> own_number(const char* proc = kProc) noexcept;

// Its numbers in the pid namespaces from that of `proc` to its own (NSpid of /proc/PID/status), outermost first; 0 behind
// the last.
using NamespaceNumbers = std::array<pid_t, 4>;
NamespaceNumbers parse_namespace_numbers(std::string_view proc_pid_status) noexcept;
NamespaceNumbers namespace_numbers_of(pid_t pid, const char* proc = kProc) noexcept;

// The name of the program, at most 15 characters. Empty when it is gone.
using ProgramName = std::array<char, 16>;
ProgramName program_name_of(pid_t pid, const char* proc = kProc) noexcept;

// Whether "NAME=value" was in the environment it was started with. false where that may not be read.
bool was_started_with(pid_t pid, std::string_view assignment, const char* proc = kProc) noexcept;

// Whether it has a file open whose path begins and ends so; nothing where that may not be read.
std::optional<bool> has_open_file(pid_t pid, std::string_view begin, std::string_view end,
                                  const char* proc = kProc) noexcept;

// Entries of a folder that are numbers: processes of /proc, open files of a process.
class NumberedEntries {
 public:
  explicit NumberedEntries(const char* folder) noexcept;
  bool is_open() const noexcept { return folder_.is_open(); }
  std::optional<int> next() noexcept;

 private:
  static constexpr std::size_t kBytes = 4096;
  FileDescriptor folder_;
  alignas(8) std::array<char, kBytes> entries_{};
  std::size_t at_ = 0;
  std::size_t size_ = 0;
};

// Whether this process is in the kernel's first pid namespace. There, and only there, NVML's numbers of processes are ours
// with every driver.
bool is_in_first_pid_namespace(const char* proc = kProc) noexcept;

}  // namespace joulemap

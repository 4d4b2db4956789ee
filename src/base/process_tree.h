// SPDX-License-Identifier: Apache-2.0
//
// Reads parents, identity, open files and environment of processes from /proc. Any thread; allocates nothing, so
// sampling threads may call it. Tests pass another folder as `proc`.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/file_descriptor.h"

namespace joulemap {

inline constexpr const char* kProcFolder = "/proc";

// PID of the parent, from the text of /proc/PID/stat or from the file itself. Returns nullopt if the process has ended.
std::optional<pid_t> parse_parent(std::string_view proc_pid_stat) noexcept;
std::optional<pid_t> read_parent_pid(pid_t pid, const char* proc = kProcFolder) noexcept;

// True if `pid` is `ancestor` or one of its descendants. False for a process that has ended.
bool descends_from(pid_t pid, pid_t ancestor, const char* proc = kProcFolder) noexcept;

// Start time in ticks since boot. PID and start time identify a process, because PIDs are reused.
std::optional<std::uint64_t> parse_start_ticks(std::string_view proc_pid_stat) noexcept;
std::optional<std::uint64_t> read_start_ticks(pid_t pid, const char* proc = kProcFolder) noexcept;

// Whether the process was forked from its parent and has not called exec since. A fork copies the address of the
// program arguments; an exec chooses a new one. Returns false where addresses are not readable.
bool is_fork_of_parent(pid_t pid, const char* proc = kProcFolder) noexcept;

// PID of this process in `proc`. Differs from getpid() if `proc` belongs to an outer PID namespace.
std::optional<pid_t> own_pid(const char* proc = kProcFolder) noexcept;

// PIDs of the process in the PID namespaces from that of `proc` to its own (NSpid of /proc/PID/status). Outermost
// first, padded with 0.
using NamespacePids = std::array<pid_t, 4>;
NamespacePids parse_namespace_pids(std::string_view proc_pid_status) noexcept;
NamespacePids namespace_pids_of(pid_t pid, const char* proc = kProcFolder) noexcept;

// Program name, at most 15 characters. Empty if the process has ended.
using ProgramName = std::array<char, 16>;
ProgramName program_name_of(pid_t pid, const char* proc = kProcFolder) noexcept;

// Whether "NAME=value" was in the environment at exec. Returns false where the environment is not readable.
bool was_started_with_variable(pid_t pid, std::string_view environment_assignment,
                               const char* proc = kProcFolder) noexcept;

// Whether the process has an open file whose path starts with `begin` and ends with `end`; nullopt if not readable.
std::optional<bool> has_open_file(pid_t pid, std::string_view begin, std::string_view end,
                                  const char* proc = kProcFolder) noexcept;

// Iterates over the numeric entries of a folder: processes of /proc, open files of a process.
class NumericDirectoryEntries {
 public:
  explicit NumericDirectoryEntries(const char* folder) noexcept;
  bool is_open() const noexcept { return folder_.is_open(); }
  std::optional<int> next() noexcept;

 private:
  static constexpr std::size_t kBufferBytes = 4096;
  FileDescriptor folder_;
  alignas(8) std::array<char, kBufferBytes> entries_{};
  std::size_t at_ = 0;
  std::size_t size_ = 0;
};

// Whether this process is in the initial PID namespace. Only there do the PIDs of NVML match ours with every driver
// version.
bool is_in_initial_pid_namespace(const char* proc = kProcFolder) noexcept;

}  // namespace joulemap

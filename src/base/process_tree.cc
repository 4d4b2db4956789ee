// SPDX-License-Identifier: Apache-2.0
#include "base/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace joulemap {
namespace {

// Deeper than any real process tree; bounds the loop, because reused PIDs can form a cycle.
constexpr int kMaxAncestors = 64;
// Inode number of the initial PID namespace, part of the kernel ABI (PROC_PID_INIT_INO).
constexpr std::string_view kInitialPidNamespace = "pid:[4026531836]";
constexpr std::size_t kMaxPath_bytes = 512;
constexpr std::size_t kMaxLink_bytes = 4096;
// /proc/PID/stat has at most 600 bytes, /proc/PID/status about 1500.
constexpr std::size_t kMaxProcStat_bytes = 1024;
constexpr std::size_t kMaxProcStatus_bytes = 4096;
constexpr std::size_t kEnvironmentBuffer_bytes = 4096;
// Fields of /proc/PID/stat, counted from the state, which is the third field (proc_pid_stat(5)).
constexpr int kProcStatStartTimeField = 22 - 3;
constexpr int kProcStatArgumentsField = 48 - 3;

struct ProcFilePath {
  std::array<char, kMaxPath_bytes> text{};
  ProcFilePath(const char* proc, pid_t pid, const char* name) noexcept {
    std::snprintf(text.data(), text.size(), "%s/%d/%s", proc, static_cast<int>(pid), name);
  }
};

template <std::size_t Size>
struct ProcFileText {
  std::array<char, Size> bytes{};
  std::size_t size = 0;
  explicit ProcFileText(const char* path) noexcept {
    const FileDescriptor file(::open(path, O_RDONLY | O_CLOEXEC));
    const ssize_t read_size = file.is_open() ? ::read(file.get(), bytes.data(), bytes.size()) : 0;
    size = read_size > 0 ? static_cast<std::size_t>(read_size) : 0;
  }
  std::string_view view() const noexcept { return {bytes.data(), size}; }
};

template <class Number>
std::optional<Number> parse_leading_number(std::string_view text) noexcept {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

// The text after the name, which may contain any character including parentheses: "S 123 ...".
std::string_view skip_proc_stat_name(std::string_view proc_pid_stat) noexcept {
  const std::size_t name_end = proc_pid_stat.rfind(')');
  return name_end == std::string_view::npos || name_end + 4 >= proc_pid_stat.size()
             ? std::string_view()
             : proc_pid_stat.substr(name_end + 2);
}

std::optional<std::uint64_t> find_proc_stat_field(std::string_view proc_pid_stat, int field) noexcept {
  std::string_view remaining_fields = skip_proc_stat_name(proc_pid_stat);
  for (; field > 0; --field) {
    const std::size_t blank = remaining_fields.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    remaining_fields.remove_prefix(blank + 1);
  }
  return parse_leading_number<std::uint64_t>(remaining_fields);
}

}  // namespace

std::optional<pid_t> parse_parent(std::string_view proc_pid_stat) noexcept {
  const std::string_view remaining_fields = skip_proc_stat_name(proc_pid_stat);
  const std::optional<pid_t> parent =
      remaining_fields.empty() ? std::nullopt : parse_leading_number<pid_t>(remaining_fields.substr(2));
  return parent && *parent >= 0 ? parent : std::nullopt;
}

std::optional<std::uint64_t> parse_start_ticks(std::string_view proc_pid_stat) noexcept {
  return find_proc_stat_field(proc_pid_stat, kProcStatStartTimeField);
}

std::optional<pid_t> read_parent_pid(pid_t pid, const char* proc) noexcept {
  const ProcFileText<kMaxProcStat_bytes> text(ProcFilePath(proc, pid, "stat").text.data());
  return parse_parent(text.view());
}

std::optional<std::uint64_t> read_start_ticks(pid_t pid, const char* proc) noexcept {
  const ProcFileText<kMaxProcStat_bytes> text(ProcFilePath(proc, pid, "stat").text.data());
  return parse_start_ticks(text.view());
}

bool is_fork_of_parent(pid_t pid, const char* proc) noexcept {
  const ProcFileText<kMaxProcStat_bytes> text(ProcFilePath(proc, pid, "stat").text.data());
  const std::uint64_t arguments = find_proc_stat_field(text.view(), kProcStatArgumentsField).value_or(0);
  const std::optional<pid_t> parent = parse_parent(text.view());
  if (arguments == 0 || !parent) return false;
  const ProcFileText<kMaxProcStat_bytes> parents(ProcFilePath(proc, *parent, "stat").text.data());
  return find_proc_stat_field(parents.view(), kProcStatArgumentsField) == arguments;
}

bool descends_from(pid_t pid, pid_t ancestor, const char* proc) noexcept {
  for (int generation = 0; generation < kMaxAncestors && pid > 0; ++generation) {
    if (pid == ancestor) return true;
    const std::optional<pid_t> parent = read_parent_pid(pid, proc);
    if (!parent) return false;
    pid = *parent;
  }
  return false;
}

std::optional<pid_t> own_pid(const char* proc) noexcept {
  std::array<char, kMaxPath_bytes> path{};
  std::snprintf(path.data(), path.size(), "%s/self", proc);
  std::array<char, 32> target{};
  const ssize_t size = ::readlink(path.data(), target.data(), target.size());
  return size > 0 ? parse_leading_number<pid_t>({target.data(), static_cast<std::size_t>(size)}) : std::nullopt;
}

NamespacePids parse_namespace_pids(std::string_view proc_pid_status) noexcept {
  NamespacePids numbers{};
  constexpr std::string_view kLine = "\nNSpid:";
  const std::size_t line = proc_pid_status.find(kLine);
  if (line == std::string_view::npos) return numbers;
  std::string_view remaining_pids = proc_pid_status.substr(line + kLine.size());
  remaining_pids = remaining_pids.substr(0, remaining_pids.find('\n'));
  for (pid_t& number : numbers) {
    const std::size_t digit = remaining_pids.find_first_not_of("\t ");
    if (digit == std::string_view::npos) break;
    remaining_pids.remove_prefix(digit);
    number = parse_leading_number<pid_t>(remaining_pids).value_or(0);
    remaining_pids.remove_prefix(std::min(remaining_pids.find_first_of("\t "), remaining_pids.size()));
  }
  return numbers;
}

NamespacePids namespace_pids_of(pid_t pid, const char* proc) noexcept {
  const ProcFileText<kMaxProcStatus_bytes> text(ProcFilePath(proc, pid, "status").text.data());
  NamespacePids numbers = parse_namespace_pids(text.view());
  if (numbers[0] == 0) numbers[0] = pid;  // kernels before 4.1 and sandboxes lack the NSpid line
  return numbers;
}

ProgramName program_name_of(pid_t pid, const char* proc) noexcept {
  ProgramName name{};
  const ProcFileText<sizeof(ProgramName)> text(ProcFilePath(proc, pid, "comm").text.data());
  const std::string_view line = text.view().substr(0, text.view().find('\n'));
  std::memcpy(name.data(), line.data(), std::min(line.size(), name.size() - 1));
  return name;
}

bool was_started_with_variable(pid_t pid, std::string_view environment_assignment, const char* proc) noexcept {
  std::array<char, kEnvironmentBuffer_bytes> block;
  if (environment_assignment.empty() || environment_assignment.size() + 2 > block.size() / 2) return false;
  const FileDescriptor file(::open(ProcFilePath(proc, pid, "environ").text.data(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return false;
  std::size_t size = 1;
  block[0] = '\0';  // so that every variable has a NUL on both sides
  while (true) {
    const ssize_t read_size = ::read(file.get(), block.data() + size, block.size() - size);
    const bool is_end = read_size <= 0;
    size += is_end ? 0 : static_cast<std::size_t>(read_size);
    if (is_end && size < block.size()) block[size++] = '\0';
    const std::string_view text(block.data(), size);
    for (std::size_t match_position = text.find(environment_assignment); match_position != std::string_view::npos;
         match_position = text.find(environment_assignment, match_position + 1)) {
      const std::size_t end = match_position + environment_assignment.size();
      if (match_position > 0 && text[match_position - 1] == '\0' && end < size && text[end] == '\0') return true;
    }
    if (is_end) return false;
    const std::size_t kept_size =
        std::min(size, environment_assignment.size() + 1);  // an assignment may span two reads
    std::memmove(block.data(), block.data() + size - kept_size, kept_size);
    size = kept_size;
  }
}

NumericDirectoryEntries::NumericDirectoryEntries(const char* folder) noexcept
    : folder_(::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

std::optional<int> NumericDirectoryEntries::next() noexcept {
  while (folder_.is_open()) {
    if (at_ >= size_) {
      const long read_size = ::syscall(SYS_getdents64, folder_.get(), entries_.data(), entries_.size());
      if (read_size <= 0) return std::nullopt;
      size_ = static_cast<std::size_t>(read_size);
      at_ = 0;
    }
    const auto* const entry = reinterpret_cast<const dirent64*>(entries_.data() + at_);
    at_ += entry->d_reclen;
    if (const std::optional<int> number = parse_leading_number<int>(static_cast<const char*>(entry->d_name)))
      return number;
  }
  return std::nullopt;
}

std::optional<bool> has_open_file(pid_t pid, std::string_view begin, std::string_view end, const char* proc) noexcept {
  NumericDirectoryEntries files(ProcFilePath(proc, pid, "fd").text.data());
  if (!files.is_open()) return std::nullopt;
  while (const std::optional<int> file = files.next()) {
    std::array<char, kMaxPath_bytes> path{};
    std::snprintf(path.data(), path.size(), "%s/%d/fd/%d", proc, static_cast<int>(pid), *file);
    std::array<char, kMaxLink_bytes> target;
    const ssize_t size = ::readlink(path.data(), target.data(), target.size());
    const std::string_view name(target.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    if (size > 0 && name.starts_with(begin) && name.ends_with(end)) return true;
  }
  return false;
}

bool is_in_initial_pid_namespace(const char* proc) noexcept {
  std::array<char, kMaxPath_bytes> path{};
  std::snprintf(path.data(), path.size(), "%s/self/ns/pid", proc);
  std::array<char, 64> target{};
  const ssize_t size = ::readlink(path.data(), target.data(), target.size());
  return size > 0 && std::string_view(target.data(), static_cast<std::size_t>(size)) == kInitialPidNamespace;
}

}  // namespace joulemap

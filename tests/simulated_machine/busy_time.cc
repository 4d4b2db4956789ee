// SPDX-License-Identifier: Apache-2.0
#include "busy_time.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/small_file.h"
#include "base/text.h"

namespace joulemap::simulated {
namespace {

constexpr std::uint64_t kKernelThreadFlag = 0x00200000;  // PF_KTHREAD of linux/sched.h

constexpr pid_t kMaxNewProcesses = 256;  // if there are more at once, refresh_processes() finds them

constexpr std::int64_t kMaxClockDecrease_ns = 20 * kNanosecondsPerMillisecond;

struct ProcessIdentity {
  std::string comm;
  bool is_kernel_thread = false;
};

// From "pid (comm) state ppid pgrp session tty tpgid flags ..."; the name may contain blanks and parentheses.
std::optional<ProcessIdentity> read_process_identity(pid_t pid) {
  const Result<std::string> stat_text = read_small_file(fmt::format("/proc/{}/stat", pid));
  if (!stat_text) return std::nullopt;
  const std::size_t open_position = stat_text->find('(');
  const std::size_t close = stat_text->rfind(')');
  if (open_position == std::string::npos || close == std::string::npos) return std::nullopt;
  const std::vector<std::string_view> fields = split_whitespace(std::string_view(*stat_text).substr(close + 1));
  const std::optional<std::uint64_t> flags = fields.size() > 6 ? parse_u64(fields[6]) : std::nullopt;
  if (!flags) return std::nullopt;
  return ProcessIdentity{stat_text->substr(open_position + 1, close - open_position - 1),
                         (*flags & kKernelThreadFlag) != 0};
}

std::optional<std::int64_t> read_clock_ns(clockid_t clock) {
  timespec current_time{};
  if (clock_gettime(clock, &current_time) != 0) return std::nullopt;
  return static_cast<std::int64_t>(current_time.tv_sec) * kNanosecondsPerSecond + current_time.tv_nsec;
}

// From "0.08 0.02 0.01 2/93 4738".
std::optional<pid_t> newest_pid(int loadavg_fd) {
  std::array<char, 128> buffer;
  const ssize_t read_size = ::pread(loadavg_fd, buffer.data(), buffer.size(), 0);
  if (read_size <= 0) return std::nullopt;
  const std::string_view text = trim({buffer.data(), static_cast<std::size_t>(read_size)});
  const std::optional<std::uint64_t> number = parse_u64(text.substr(text.rfind(' ') + 1));
  if (!number) return std::nullopt;
  return static_cast<pid_t>(*number);
}

}  // namespace

Result<BusyTime> BusyTime::start(bool counts_self) {
  Directory proc(::opendir("/proc"), ::closedir);
  if (!proc) return system_error("list", "/proc", errno);
  Result<FileDescriptor> load = open_for_reading("/proc/loadavg");
  if (!load) return std::move(load).error();
  BusyTime busy(std::move(proc), std::move(*load));
  if (!counts_self) busy.ignored_pids_.insert(::getpid());
  busy.newest_pid_ = newest_pid(busy.loadavg_file_.get()).value_or(0);
  busy.scan_processes(false);
  return busy;
}

void BusyTime::refresh_processes() {
  scan_processes(true);
  for (auto& [pid, process] : processes_) {
    if (!std::exchange(process.used_cpu_since_refresh, false)) continue;
    if (std::optional<ProcessIdentity> identity = read_process_identity(pid))
      process.share.comm = std::move(identity->comm);
  }
}

void BusyTime::scan_processes(bool counts_from_birth) {
  ::rewinddir(proc_.get());
  std::set<pid_t> still_ignored;
  while (const dirent* entry = ::readdir(proc_.get())) {
    const std::optional<std::uint64_t> number = parse_u64(entry->d_name);
    if (!number) continue;
    const auto pid = static_cast<pid_t>(*number);
    if (!processes_.contains(pid) && !ignored_pids_.contains(pid)) add(pid, counts_from_birth);
    if (ignored_pids_.contains(pid)) still_ignored.insert(still_ignored.end(), pid);
  }
  // The pid of an ended kernel thread may be reused by a process.
  ignored_pids_ = std::move(still_ignored);
}

// Scanning /proc every tick would cost too much, and every 10 ms would miss most processes of a shell script. Pids are
// assigned in order: only those since the last tick are new.
void BusyTime::add_new_processes() {
  const std::optional<pid_t> latest_pid = newest_pid(loadavg_file_.get());
  if (!latest_pid || *latest_pid == newest_pid_) return;
  const pid_t previous_pid = std::exchange(newest_pid_, *latest_pid);
  if (*latest_pid < previous_pid || *latest_pid - previous_pid > kMaxNewProcesses) return;
  for (pid_t pid = previous_pid + 1; pid <= *latest_pid; ++pid) {
    if (!processes_.contains(pid)) add(pid, true);
  }
}

void BusyTime::add(pid_t pid, bool counts_from_birth) {
  Process process;
  if (clock_getcpuclockid(pid, &process.clock) != 0) return;  // ended, or a thread of another process
  std::optional<ProcessIdentity> identity = read_process_identity(pid);
  if (!identity) return;
  if (identity->is_kernel_thread) {
    ignored_pids_.insert(pid);
    return;
  }
  if (!counts_from_birth) process.last_cpu_ns = read_clock_ns(process.clock).value_or(0);
  process.share.pid = pid;
  process.share.comm = std::move(identity->comm);
  processes_.emplace(pid, std::move(process));
}

void BusyTime::update_pending_time(Process& process) {
  const std::optional<std::int64_t> now_ns = read_clock_ns(process.clock);
  // A clock that went far back belongs to another process with the same pid; refresh_processes() will find it. A small
  // decrease is no proof.
  if (!now_ns || *now_ns < process.last_cpu_ns - kMaxClockDecrease_ns) {
    process.gone = true;
    return;
  }
  if (*now_ns <= process.last_cpu_ns) return;
  process.pending_cpu_s += seconds(*now_ns - process.last_cpu_ns);
  process.last_cpu_ns = *now_ns;
  process.used_cpu_since_refresh = true;
}

double BusyTime::advance(double capacity_s) {
  add_new_processes();
  double pending_cpu_s = 0;
  for (auto& [pid, process] : processes_) {
    if (!process.gone) update_pending_time(process);
    pending_cpu_s += process.pending_cpu_s;
  }
  const double granted_fraction = pending_cpu_s > capacity_s ? capacity_s / pending_cpu_s : 1;
  for (auto& [pid, process] : processes_) {
    process.charged_cpu_s = process.pending_cpu_s * granted_fraction;
    process.pending_cpu_s -= process.charged_cpu_s;
    process.share.cpu_s += process.charged_cpu_s;
  }
  const double charged_cpu_s = pending_cpu_s * granted_fraction;
  total_cpu_s_ += charged_cpu_s;
  return charged_cpu_s;
}

std::vector<ProcessCharge> BusyTime::list_charged_processes() const {
  std::vector<ProcessCharge> charged_processes;
  for (const auto& [pid, process] : processes_) {
    if (process.charged_cpu_s > 0) charged_processes.push_back({pid, process.charged_cpu_s});
  }
  return charged_processes;
}

void BusyTime::attribute_energy(double joules) {
  double charged_cpu_s = 0;
  for (const auto& [pid, process] : processes_) charged_cpu_s += process.charged_cpu_s;
  if (charged_cpu_s > 0) {
    for (auto& [pid, process] : processes_) {
      process.share.joules_package += joules * process.charged_cpu_s / charged_cpu_s;
    }
  }
  drop_exited();
}

void BusyTime::drop_exited() {
  for (auto process_entry = processes_.begin(); process_entry != processes_.end();) {
    Process& process = process_entry->second;
    if (!process.gone || process.pending_cpu_s > 0) {
      ++process_entry;
      continue;
    }
    if (process.share.cpu_s > 0) ended_processes_.push_back(std::move(process.share));
    process_entry = processes_.erase(process_entry);
  }
}

std::vector<ProcessShare> BusyTime::shares() const {
  std::vector<ProcessShare> process_shares = ended_processes_;
  for (const auto& [pid, process] : processes_) {
    if (process.share.cpu_s > 0) process_shares.push_back(process.share);
  }
  std::stable_sort(process_shares.begin(), process_shares.end(),
                   [](const auto& a, const auto& b) { return a.pid < b.pid; });
  return process_shares;
}

}  // namespace joulemap::simulated

// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_times.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "base/small_file.h"
#include "base/text.h"

namespace joulemap {
namespace {

double ticks_per_second() { return static_cast<double>(::sysconf(_SC_CLK_TCK)); }

double timeval_to_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

Error malformed_proc_error(std::string_view file_name, std::string_view text) {
  return {ErrorCode::malformed, fmt::format("{}: cannot parse {}", file_name, quoted(text)), {}};
}

}  // namespace

std::optional<std::uint64_t> parse_busy_ticks(std::string_view proc_stat) noexcept {
  const std::string_view line = proc_stat.substr(0, proc_stat.find('\n'));
  if (!line.starts_with("cpu ")) return std::nullopt;
  // user nice system idle iowait irq softirq steal guest guest_nice; guest time is part of user time.
  constexpr std::array<bool, 7> kIsBusyField = {true, true, true, false, false, true, true};
  constexpr std::size_t kMinCpuTimeFields = 4;  // kernels before 2.6 have only user, nice, system and idle
  std::uint64_t busy = 0;
  const char* position = line.data() + 4;
  const char* const end = line.data() + line.size();
  for (std::size_t field = 0; field < kIsBusyField.size(); ++field) {
    while (position != end && *position == ' ') ++position;
    if (position == end && field >= kMinCpuTimeFields) break;
    std::uint64_t ticks = 0;
    const auto [number_end, error] = std::from_chars(position, end, ticks);
    if (error != std::errc{} || (number_end != end && *number_end != ' ')) return std::nullopt;
    if (kIsBusyField[field]) busy += ticks;
    position = number_end;
  }
  return busy;
}

Result<MachineCpuTime> parse_machine_cpu_time(std::string_view proc_stat, double ticks_per_second) {
  const auto busy = parse_busy_ticks(proc_stat);
  if (!busy) return malformed_proc_error("/proc/stat", proc_stat);
  int cpus = -1;  // the first line is the total
  for (std::string_view line : split(proc_stat, '\n')) {
    if (!line.starts_with("cpu")) break;
    ++cpus;
  }
  return MachineCpuTime{static_cast<double>(*busy) / ticks_per_second, std::max(cpus, 1)};
}

Result<MachineCpuTime> read_machine_cpu_time(const SystemRoot& root) {
  const std::string path = root.path("/proc/stat");
  Result<std::string> text = read_small_file(path);
  if (!text) return std::move(text).error();
  return parse_machine_cpu_time(*text, ticks_per_second());
}

Result<ProcessCpuTime> parse_process_cpu_time(std::string_view text, double ticks_per_second) {
  const std::size_t name_end = text.rfind(')');
  const auto pid = parse_u64(text.substr(0, text.find(' ')));
  if (name_end == std::string_view::npos || !pid) return malformed_proc_error("/proc/PID/stat", text);
  // Fields after the name, counted from state = 0: state ppid ... utime(11) stime(12) cutime(13) cstime(14).
  const std::vector<std::string_view> fields = split_whitespace(text.substr(name_end + 1));
  if (fields.size() < 15) return malformed_proc_error("/proc/PID/stat", text);
  const auto parent = parse_u64(fields[1]);
  const auto user = parse_u64(fields[11]);
  const auto system = parse_u64(fields[12]);
  const auto children_user = parse_u64(fields[13]);
  const auto children_system = parse_u64(fields[14]);
  if (!parent || !user || !system || !children_user || !children_system)
    return malformed_proc_error("/proc/PID/stat", text);
  return ProcessCpuTime{
      static_cast<pid_t>(*pid), static_cast<pid_t>(*parent),
      (static_cast<double>(*user) + static_cast<double>(*system)) / ticks_per_second,
      (static_cast<double>(*children_user) + static_cast<double>(*children_system)) / ticks_per_second};
}

Result<ProcessCpuTime> read_process_cpu_time(pid_t pid) {
  Result<std::string> text = read_small_file(fmt::format("/proc/{}/stat", pid));
  if (!text) return std::move(text).error();
  return parse_process_cpu_time(*text, ticks_per_second());
}

std::vector<ProcessCpuTime> read_all_process_cpu_times() {
  std::vector<ProcessCpuTime> processes;
  const Result<std::vector<std::string>> names = list_directory("/proc");
  if (!names) return processes;
  const double rate = ticks_per_second();
  for (const std::string& name : *names) {
    if (!parse_u64(name)) continue;
    const Result<std::string> text = read_small_file("/proc/" + name + "/stat");
    if (!text) continue;  // ended after the directory was listed
    if (const Result<ProcessCpuTime> process = parse_process_cpu_time(*text, rate)) processes.push_back(*process);
  }
  return processes;
}

Result<double> process_tree_cpu_s(const std::vector<ProcessCpuTime>& processes, pid_t root) {
  std::unordered_multimap<pid_t, const ProcessCpuTime*> children;
  const ProcessCpuTime* top = nullptr;
  for (const ProcessCpuTime& process : processes) {
    children.emplace(process.parent, &process);
    if (process.pid == root) top = &process;
  }
  if (top == nullptr) return Error{ErrorCode::not_found, fmt::format("no process {}", root), {}};

  double total_s = 0;
  std::unordered_set<pid_t> visited_pids{root};
  std::vector<const ProcessCpuTime*> pending_processes{top};
  while (!pending_processes.empty()) {
    const ProcessCpuTime* process = pending_processes.back();
    pending_processes.pop_back();
    total_s += process->process_cpu_s + process->reaped_children_cpu_s;
    const auto [children_begin, children_end] = children.equal_range(process->pid);
    for (auto child = children_begin; child != children_end; ++child) {
      if (visited_pids.insert(child->second->pid).second) pending_processes.push_back(child->second);
    }
  }
  return total_s;
}

UserSystemTime read_finished_children_cpu_time() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return {timeval_to_seconds(usage.ru_utime), timeval_to_seconds(usage.ru_stime)};
}

}  // namespace joulemap

// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/machine_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/small_file.h"
#include "base/text.h"

namespace joulemap::experiment {
namespace {

constexpr std::string_view kCpuFolder = "/sys/devices/system/cpu";
constexpr std::size_t kProcStatStart_bytes = 512;
constexpr std::size_t kCpuTimeFieldCount =
    8;  // user nice system idle iowait irq softirq steal; user includes guest time

std::optional<std::string> read_trimmed_file(const std::string& path) {
  const Result<std::string> text = read_small_file(path);
  if (!text) return std::nullopt;
  return std::string(trim(*text));
}

// Folders "cpu0", "cpu17" of sysfs, not "cpufreq".
std::vector<std::string> cpu_folders(const SystemRoot& root) {
  std::vector<std::string> folders;
  const Result<std::vector<std::string>> names = list_directory(root.path(kCpuFolder));
  if (!names) return folders;
  for (const std::string& name : *names) {
    if (name.starts_with("cpu") && parse_u64(std::string_view(name).substr(3))) {
      folders.push_back(fmt::format("{}/{}", root.path(kCpuFolder), name));
    }
  }
  return folders;
}

std::optional<double> share_of_cpu_ticks(std::uint64_t part, const std::optional<CpuTicks>& begin,
                                         const std::optional<CpuTicks>& end) {
  if (!begin || !end || end->total_ticks <= begin->total_ticks) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(end->total_ticks - begin->total_ticks);
}

// Parses a line such as "SwapFree:        1024 kB".
std::optional<std::uint64_t> meminfo_value_kb(std::string_view meminfo, std::string_view key) {
  for (const std::string_view line : split(meminfo, '\n')) {
    if (!line.starts_with(key)) continue;
    const std::vector<std::string_view> words = split_whitespace(line);
    return words.size() > 1 ? parse_u64(words[1]) : std::nullopt;
  }
  return std::nullopt;
}

bool is_cpu_sensor(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"coretemp", "k10temp", "zenpower", "cpu_thermal"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

void add_hwmon_temperatures(const std::string& folder, std::map<std::string, double>& temperatures) {
  const std::string name = read_trimmed_file(folder + "/name").value_or("");
  if (!is_cpu_sensor(name)) return;
  const Result<std::vector<std::string>> files = list_directory(folder);
  if (!files) return;
  for (const std::string& file : *files) {
    if (!file.starts_with("temp") || !file.ends_with("_input")) continue;
    const std::string sensor = file.substr(0, file.size() - std::string_view("_input").size());
    const std::optional<double> millidegrees = parse_double(read_trimmed_file(folder + "/" + file).value_or(""));
    const std::string label = read_trimmed_file(fmt::format("{}/{}_label", folder, sensor)).value_or(sensor);
    if (millidegrees) temperatures[name + "/" + label] = *millidegrees / 1000;
  }
}

}  // namespace

std::optional<CpuTicks> read_cpu_ticks(const SystemRoot& root) {
  const Result<std::string> text = read_file_start(root.path("/proc/stat"), kProcStatStart_bytes);
  if (!text) return std::nullopt;
  const std::vector<std::string_view> words = split_whitespace(std::string_view(*text).substr(0, text->find('\n')));
  if (words.size() < 1 + kCpuTimeFieldCount || words[0] != "cpu") return std::nullopt;
  std::array<std::uint64_t, kCpuTimeFieldCount> ticks{};
  CpuTicks sums;
  for (std::size_t i = 0; i < kCpuTimeFieldCount; ++i) {
    const std::optional<std::uint64_t> value = parse_u64(words[i + 1]);
    if (!value) return std::nullopt;
    ticks[i] = *value;
    sums.total_ticks += *value;
  }
  sums.stolen_ticks = ticks[7];
  sums.busy_ticks = sums.total_ticks - ticks[3] - ticks[4] - ticks[7];
  return sums;
}

std::optional<double> cpu_busy_share(const std::optional<CpuTicks>& begin, const std::optional<CpuTicks>& end) {
  return share_of_cpu_ticks(
      begin && end && end->busy_ticks > begin->busy_ticks ? end->busy_ticks - begin->busy_ticks : 0, begin, end);
}

std::optional<double> cpu_steal_share(const std::optional<CpuTicks>& begin, const std::optional<CpuTicks>& end) {
  return share_of_cpu_ticks(
      begin && end && end->stolen_ticks > begin->stolen_ticks ? end->stolen_ticks - begin->stolen_ticks : 0, begin,
      end);
}

std::optional<double> load_per_cpu(const SystemRoot& root) {
  const std::string text = read_trimmed_file(root.path("/proc/loadavg")).value_or("");
  const std::vector<std::string_view> words = split_whitespace(text);
  const std::optional<double> load = words.empty() ? std::nullopt : parse_double(words[0]);
  const auto online_cpus = parse_cpu_list(read_trimmed_file(root.path("/sys/devices/system/cpu/online")).value_or(""));
  if (!load || !online_cpus || online_cpus->empty()) return std::nullopt;
  return *load / static_cast<double>(online_cpus->size());
}

std::vector<std::string> governor_files(const SystemRoot& root) {
  std::vector<std::string> files;
  for (const std::string& folder : cpu_folders(root)) {
    std::string path = folder + "/cpufreq/scaling_governor";
    if (file_exists(path)) files.push_back(std::move(path));
  }
  return files;
}

std::string read_governors(const SystemRoot& root) {
  std::set<std::string> distinct_governors;
  for (const std::string& path : governor_files(root))
    distinct_governors.insert(read_trimmed_file(path).value_or("unreadable"));
  std::string text;
  for (const std::string& governor : distinct_governors) text += (text.empty() ? "" : ", ") + governor;
  return text;
}

std::optional<TurboFile> find_turbo_file(const SystemRoot& root) {
  // Kernel documentation, admin-guide/pm: intel_pstate.rst (no_turbo), cpufreq.rst (boost).
  const TurboFile intel_turbo_file{root.path("/sys/devices/system/cpu/intel_pstate/no_turbo"), "0", "1"};
  if (file_exists(intel_turbo_file.path)) return intel_turbo_file;
  const TurboFile cpufreq_turbo_file{root.path("/sys/devices/system/cpu/cpufreq/boost"), "1", "0"};
  if (file_exists(cpufreq_turbo_file.path)) return cpufreq_turbo_file;
  return std::nullopt;
}

std::optional<bool> is_turbo_enabled(const SystemRoot& root) {
  const std::optional<TurboFile> file = find_turbo_file(root);
  const std::optional<std::string> text = file ? read_trimmed_file(file->path) : std::nullopt;
  if (!text) return std::nullopt;
  return *text == file->on_value;
}

std::optional<std::uint64_t> swap_used_bytes(const SystemRoot& root) {
  const std::optional<std::string> meminfo = read_trimmed_file(root.path("/proc/meminfo"));
  if (!meminfo) return std::nullopt;
  const std::optional<std::uint64_t> total = meminfo_value_kb(*meminfo, "SwapTotal:");
  const std::optional<std::uint64_t> free_kb = meminfo_value_kb(*meminfo, "SwapFree:");
  if (!total || !free_kb) return std::nullopt;
  return (*total > *free_kb ? *total - *free_kb : 0) * 1024;
}

std::map<std::string, double> cpu_temperatures(const SystemRoot& root) {
  std::map<std::string, double> temperatures;
  const std::string folder = root.path("/sys/class/hwmon");
  const Result<std::vector<std::string>> names = list_directory(folder);
  if (!names) return temperatures;
  for (const std::string& name : *names) add_hwmon_temperatures(folder + "/" + name, temperatures);
  return temperatures;
}

std::optional<std::uint64_t> thermal_throttle_count(const SystemRoot& root) {
  std::optional<std::uint64_t> sum;
  for (const std::string& folder : cpu_folders(root)) {
    // Kernel documentation, ABI/testing/sysfs-devices-system-cpu: thermal_throttle.
    const std::string text = read_trimmed_file(folder + "/thermal_throttle/core_throttle_count").value_or("");
    if (const std::optional<std::uint64_t> count = parse_u64(text)) sum = sum.value_or(0) + *count;
  }
  return sum;
}

}  // namespace joulemap::experiment

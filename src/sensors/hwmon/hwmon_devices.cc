// SPDX-License-Identifier: Apache-2.0
#include "sensors/hwmon/hwmon_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/small_file.h"
#include "base/text.h"

namespace joulemap::sensors {
namespace {

constexpr std::string_view kHwmonClassPath = "/sys/class/hwmon";
constexpr double kUnitsPerMicroUnit =
    1e-6;  // hwmon uses microjoules and microwatts (Documentation/hwmon/sysfs-interface)
constexpr double kHwmonGaugePeriod_s = 0.1;  // power meters behind hwmon average over tens to hundreds of milliseconds
constexpr double kHwmonCounterPeriod_s = 0.01;  // assumed update period; driver or firmware accumulates these counters

struct HwmonDevice {
  std::string directory;
  std::string driver_name;     // name of the driver: "amdgpu"
  std::string bus_address;     // PCI address or platform device; empty where unknown
  int index_of_same_kind = 0;  // index among devices whose domains have the same prefix
};

std::string read_sanitized_name(const std::string& path) {
  const Result<std::string> text = read_small_file(path);
  if (!text) return {};
  std::string word(trim(*text));
  for (char& c : word) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.') c = '_';
  }
  return word.substr(0, 64);
}

std::string to_lower_case(std::string_view label) {
  std::string out(label);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// Prefix of the domains of a driver's devices. i915 and xe, the old and the new driver of Intel GPUs, can drive cards of
// one machine.
std::string domain_prefix(const std::string& driver_name) {
  return driver_name == "i915" || driver_name == "xe" ? "intel-gpu" : driver_name;
}

// Sets domain, class and containment from the driver's name and the file's label.
void set_hwmon_domain(const HwmonDevice& device, const HwmonFileName& file, const std::string& label,
                      Channel& channel) {
  if (device.driver_name == "amdgpu") {
    channel.domain = fmt::format("amdgpu-{}", device.index_of_same_kind);
    channel.domain_class = DomainClass::gpu;
  } else if (device.driver_name == "i915" || device.driver_name == "xe") {
    const std::string card = fmt::format("{}-{}", domain_prefix(device.driver_name), device.index_of_same_kind);
    const bool is_inner_domain = !label.empty() && to_lower_case(label) != "card";
    channel.domain = is_inner_domain ? fmt::format("{}-{}", card, to_lower_case(label)) : card;
    channel.part_of = is_inner_domain ? card : "";
    channel.domain_class = is_inner_domain ? DomainClass::other : DomainClass::gpu;
  } else if (device.driver_name == "amd_energy" && label.starts_with("Esocket")) {
    channel.domain = fmt::format("package-{}", label.substr(7));
    channel.domain_class = DomainClass::cpu;
  } else {
    channel.domain = fmt::format(
        "{}-{}{}", device.driver_name, device.index_of_same_kind,
        label.empty() ? (file.channel_index == "1" ? "" : "-" + file.channel_index) : "-" + to_lower_case(label));
    channel.is_countable = false;
  }
}

std::vector<HwmonFile> list_hwmon_device_files(const HwmonDevice& device) {
  std::vector<HwmonFile> files;
  const Result<std::vector<std::string>> names = list_directory(device.directory);
  if (!names) return files;
  for (const std::string& name : *names) {
    const std::optional<HwmonFileName> file_name = parse_hwmon_file_name(name);
    if (!file_name) continue;
    const bool counter = file_name->channel_kind == ChannelKind::counter;
    const bool has_average = std::find(names->begin(), names->end(),
                                       fmt::format("power{}_average", file_name->channel_index)) != names->end();
    if (!counter && !file_name->is_average && has_average)
      continue;  // use the average instead: it misses nothing between reads
    const std::string label = read_sanitized_name(
        fmt::format("{}/{}{}_label", device.directory, counter ? "energy" : "power", file_name->channel_index));
    if (device.driver_name == "amd_energy" && !label.starts_with("Esocket"))
      continue;  // counters of single cores, which are part of the socket

    HwmonFile file{device.directory + "/" + name, {}};
    Channel& channel = file.channel;
    set_hwmon_domain(device, *file_name, label, channel);
    channel.name = counter ? channel.domain + "-energy" : channel.domain + "-power";
    channel.sensor = "hwmon";
    channel.source = device.bus_address.empty() ? file.path : fmt::format("{} ({})", file.path, device.bus_address);
    channel.kind = file_name->channel_kind;
    channel.quantity = counter ? Quantity::energy : Quantity::power;
    channel.scale = kUnitsPerMicroUnit;
    channel.refresh_s = counter ? kHwmonCounterPeriod_s : kHwmonGaugePeriod_s;
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

std::optional<HwmonFileName> parse_hwmon_file_name(std::string_view name) {
  HwmonFileName file;
  if (name.starts_with("energy")) {
    file.channel_kind = ChannelKind::counter;
    name.remove_prefix(6);
  } else if (name.starts_with("power")) {
    name.remove_prefix(5);
  } else {
    return std::nullopt;
  }
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  if (digits == 0 || digits > 4) return std::nullopt;
  file.channel_index = name.substr(0, digits);
  name.remove_prefix(digits);
  file.is_average = name == "_average" && file.channel_kind == ChannelKind::gauge;
  if (name != "_input" && !file.is_average) return std::nullopt;
  return file;
}

Result<std::vector<HwmonFile>> find_hwmon_files(const SystemRoot& root) {
  const std::string top = root.path(kHwmonClassPath);
  std::vector<HwmonFile> files;
  Result<std::vector<std::string>> names = list_directory(top);
  if (!names) {
    if (names.error().code == ErrorCode::not_found) return files;
    return std::move(names).error();
  }
  std::map<std::string, int> device_count_by_prefix;
  for (const std::string& name : *names) {
    HwmonDevice device{top + "/" + name, read_sanitized_name(top + "/" + name + "/name"), {}, 0};
    if (device.driver_name.empty()) continue;
    device.bus_address = link_target_name(device.directory + "/device");
    device.index_of_same_kind = device_count_by_prefix[domain_prefix(device.driver_name)]++;
    for (HwmonFile& file : list_hwmon_device_files(device)) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace joulemap::sensors

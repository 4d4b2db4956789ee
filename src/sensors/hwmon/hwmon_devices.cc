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

constexpr std::string_view kClassPath = "/sys/class/hwmon";
constexpr double kMicro = 1e-6;          // hwmon uses microjoules and microwatts (Documentation/hwmon/sysfs-interface)
constexpr double kGaugeRefresh_s = 0.1;  // power meters behind hwmon average over tens to hundreds of milliseconds
constexpr double kCounterRefresh_s = 0.01;  // assumed update period; driver or firmware accumulates these counters

struct Device {
  std::string directory;
  std::string name;   // name of the driver: "amdgpu"
  std::string where;  // PCI address or platform device; empty where unknown
  int number = 0;     // index among devices of the same name
};

std::string word_of(const std::string& path) {
  const Result<std::string> text = read_small_file(path);
  if (!text) return {};
  std::string word(trim(*text));
  for (char& c : word) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.') c = '_';
  }
  return word.substr(0, 64);
}

std::string slug(std::string_view label) {
  std::string out(label);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// Sets domain, class and containment from the driver's name and the file's label.
void name_domain(const Device& device, const HwmonFileName& file, const std::string& label, Channel& channel) {
  if (device.name == "amdgpu") {
    channel.domain = fmt::format("amdgpu-{}", device.number);
    channel.domain_class = DomainClass::gpu;
  } else if (device.name == "i915" || device.name == "xe") {
    const std::string card = fmt::format("intel-gpu-{}", device.number);
    const bool inner = !label.empty() && slug(label) != "card";
    channel.domain = inner ? fmt::format("{}-{}", card, slug(label)) : card;
    channel.part_of = inner ? card : "";
    channel.domain_class = inner ? DomainClass::other : DomainClass::gpu;
  } else if (device.name == "amd_energy" && label.starts_with("Esocket")) {
    channel.domain = fmt::format("package-{}", label.substr(7));
    channel.domain_class = DomainClass::cpu;
  } else {
    channel.domain = fmt::format("{}-{}{}", device.name, device.number,
                                 label.empty() ? (file.index == "1" ? "" : "-" + file.index) : "-" + slug(label));
    channel.is_countable = false;
  }
}

std::vector<HwmonFile> files_of(const Device& device) {
  std::vector<HwmonFile> files;
  const Result<std::vector<std::string>> names = list_directory(device.directory);
  if (!names) return files;
  for (const std::string& name : *names) {
    const std::optional<HwmonFileName> parsed = parse_hwmon_file_name(name);
    if (!parsed) continue;
    const bool counter = parsed->kind == ChannelKind::counter;
    const bool has_average =
        std::find(names->begin(), names->end(), fmt::format("power{}_average", parsed->index)) != names->end();
    if (!counter && !parsed->is_average && has_average)
      continue;  // use the average instead: it misses nothing between reads
    const std::string label =
        word_of(fmt::format("{}/{}{}_label", device.directory, counter ? "energy" : "power", parsed->index));
    if (device.name == "amd_energy" && !label.starts_with("Esocket"))
      continue;  // counters of single cores, which are part of the socket

    HwmonFile file{device.directory + "/" + name, {}};
    Channel& channel = file.channel;
    name_domain(device, *parsed, label, channel);
    channel.name = counter ? channel.domain + "-energy" : channel.domain + "-power";
    channel.sensor = "hwmon";
    channel.source = device.where.empty() ? file.path : fmt::format("{} ({})", file.path, device.where);
    channel.kind = parsed->kind;
    channel.quantity = counter ? Quantity::energy : Quantity::power;
    channel.scale = kMicro;
    channel.refresh_s = counter ? kCounterRefresh_s : kGaugeRefresh_s;
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

std::optional<HwmonFileName> parse_hwmon_file_name(std::string_view name) {
  HwmonFileName file;
  if (name.starts_with("energy")) {
    file.kind = ChannelKind::counter;
    name.remove_prefix(6);
  } else if (name.starts_with("power")) {
    name.remove_prefix(5);
  } else {
    return std::nullopt;
  }
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  if (digits == 0 || digits > 4) return std::nullopt;
  file.index = name.substr(0, digits);
  name.remove_prefix(digits);
  file.is_average = name == "_average" && file.kind == ChannelKind::gauge;
  if (name != "_input" && !file.is_average) return std::nullopt;
  return file;
}

Result<std::vector<HwmonFile>> find_hwmon_files(const SystemRoot& root) {
  const std::string top = root.path(kClassPath);
  std::vector<HwmonFile> files;
  Result<std::vector<std::string>> names = list_directory(top);
  if (!names) {
    if (names.error().code == ErrorCode::not_found) return files;
    return std::move(names).error();
  }
  std::map<std::string, int> seen;
  for (const std::string& name : *names) {
    Device device{top + "/" + name, word_of(top + "/" + name + "/name"), {}, 0};
    if (device.name.empty()) continue;
    device.where = link_target_name(device.directory + "/device");
    device.number = seen[device.name]++;
    for (HwmonFile& file : files_of(device)) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace joulemap::sensors

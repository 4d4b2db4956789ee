// SPDX-License-Identifier: Apache-2.0
#include "powercap_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/file_descriptor.h"
#include "base/small_file.h"

namespace joulemap::simulated {
namespace {

constexpr std::string_view kControlType = "intel-rapl";

Zone make_top_zone(int number, std::string name) {
  const std::string id = fmt::format("{}:{}", kControlType, number);
  return {id, fmt::format("{}/{}", kControlType, id), name, std::move(name), true};
}

Zone make_sub_zone(const Zone& parent, int socket, int number, const std::string& name) {
  const std::string id = fmt::format("{}:{}", parent.id, number);
  return {id, fmt::format("{}/{}", parent.folder, id), name, fmt::format("{}-{}", name, socket), false};
}

Status make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return system_error("create", path, error.value());
  return Done{};
}

Status make_file(const std::string& path, const std::string& text) {
  const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.is_open()) return system_error("create", path, errno);
  const std::string line = text + "\n";
  if (::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return system_error("write", path, errno);
  }
  if (::fchmod(fd.get(), 0644) != 0) return system_error("chmod", path, errno);
  return Done{};
}

Status make_link(const std::string& path, const std::string& target) {
  if (::symlink(target.c_str(), path.c_str()) != 0) return system_error("link", path, errno);
  return Done{};
}

Status make_zone(const std::string& root, const Zone& zone, const TreeSettings& settings) {
  const std::string folder = fmt::format("{}/{}", powercap_devices_folder(root), zone.folder);
  if (Status folder_status = make_folder(folder); !folder_status) return folder_status;

  std::vector<std::pair<std::string, std::string>> files = {
      {"name", zone.name}, {"max_energy_range_uj", std::to_string(settings.wrap_uj)}, {"enabled", "1"}};
  if (zone.has_limit) {
    const std::string limit_uw = std::to_string(std::llround(settings.limit_w * 1e6));
    files.insert(files.end(), {{"constraint_0_name", "long_term"},
                               {"constraint_0_power_limit_uw", limit_uw},
                               {"constraint_0_max_power_uw", limit_uw}});
  }
  for (const auto& [name, text] : files) {
    if (Status file_status = make_file(fmt::format("{}/{}", folder, name), text); !file_status) return file_status;
  }
  return make_link(fmt::format("{}/{}", powercap_class_folder(root), zone.id),
                   "../../devices/virtual/powercap/" + zone.folder);
}

Status refuse_existing(const std::string& path) {
  if (!file_exists(path)) return Done{};
  return Error{ErrorCode::usage, fmt::format("{} exists already", path), "give --root a folder that is new or empty"};
}

}  // namespace

std::vector<Zone> list_zones(int sockets, bool with_psys) {
  std::vector<Zone> zones;
  for (int socket = 0; socket < sockets; ++socket) {
    const Zone package = make_top_zone(socket, fmt::format("package-{}", socket));
    zones.push_back(package);
    zones.push_back(make_sub_zone(package, socket, 0, "core"));
    zones.push_back(make_sub_zone(package, socket, 1, "dram"));
  }
  if (with_psys) zones.push_back(make_top_zone(sockets, "psys"));
  return zones;
}

std::string powercap_devices_folder(const std::string& root) { return root + "/sys/devices/virtual/powercap"; }

std::string powercap_class_folder(const std::string& root) { return root + "/sys/class/powercap"; }

std::string energy_path(const std::string& root, const Zone& zone) {
  return fmt::format("{}/{}/energy_uj", powercap_devices_folder(root), zone.folder);
}

Status build_powercap_tree(const std::string& root, const std::vector<Zone>& zones, const TreeSettings& settings) {
  for (const char* system_folder : {"/sys", "/proc"}) {
    if (Status absence_check = refuse_existing(root + system_folder); !absence_check) return absence_check;
  }
  const std::string control_type_folder = fmt::format("{}/{}", powercap_devices_folder(root), kControlType);
  for (const std::string& folder : {control_type_folder, powercap_class_folder(root)}) {
    if (Status folder_status = make_folder(folder); !folder_status) return folder_status;
  }
  if (Status file_status = make_file(control_type_folder + "/enabled", "1"); !file_status) return file_status;

  const std::vector<std::pair<std::string, std::string>> links = {
      {fmt::format("{}/{}", powercap_class_folder(root), kControlType),
       fmt::format("../../devices/virtual/powercap/{}", kControlType)},
      {root + "/sys/devices/system", "/sys/devices/system"},
      {root + "/proc", "/proc"}};
  for (const auto& [path, target] : links) {
    if (Status link_status = make_link(path, target); !link_status) return link_status;
  }
  for (const Zone& zone : zones) {
    if (Status zone_status = make_zone(root, zone, settings); !zone_status) return zone_status;
  }
  return Done{};
}

}  // namespace joulemap::simulated

// SPDX-License-Identifier: Apache-2.0
#include "sensors/host_traits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/small_file.h"
#include "base/text.h"
#include "sensors/sensor.h"

namespace joulemap::sensors {
namespace {

constexpr std::size_t kMaxFirstCpuinfoBytes = 4096;

std::string read_first_line(const std::string& path) {
  const Result<std::string> text = read_small_file(path);
  if (!text) return {};
  const std::string_view line = trim(std::string_view(*text).substr(0, text->find('\n')));
  return std::string(line);
}

std::string find_hypervisor(const SystemRoot& root) {
  if (read_first_line(root.path("/proc/version")).find("icrosoft") != std::string::npos) return "WSL";
  std::string xen = read_first_line(root.path("/sys/hypervisor/type"));
  if (!xen.empty()) return xen;
  const std::string product = read_first_line(root.path("/sys/class/dmi/id/product_name"));
  const std::string vendor = read_first_line(root.path("/sys/class/dmi/id/sys_vendor"));
  if (vendor.empty() && product.empty()) return {};
  return product.empty() ? vendor : vendor + " " + product;
}

// ARM processors have no flag for a hypervisor. Their virtual machines are known by the device tree or by the firmware.
bool is_arm_virtual_machine(const SystemRoot& root) {
  if (file_exists(root.path("/proc/device-tree/hypervisor/compatible"))) return true;
  if (read_first_line(root.path("/proc/device-tree/compatible")).find("dummy-virt") != std::string::npos) return true;
  const std::string vendor = read_first_line(root.path("/sys/class/dmi/id/sys_vendor"));
  const std::string product = read_first_line(root.path("/sys/class/dmi/id/product_name"));
  if (vendor == "Amazon EC2") return product.find(".metal") == std::string::npos;
  constexpr std::array<std::string_view, 5> kVirtualVendors = {"QEMU", "KVM", "VMware", "Google", "Xen"};
  const auto is_vendor_of_machine = [&](std::string_view name) { return vendor.starts_with(name); };
  return std::ranges::any_of(kVirtualVendors, is_vendor_of_machine) ||
         product.find("Virtual Machine") != std::string::npos;
}

std::string find_container_engine(const SystemRoot& root) {
  if (file_exists(root.path("/.dockerenv"))) return "docker";
  if (file_exists(root.path("/run/.containerenv"))) return "podman";
  const Result<std::string> cgroup = read_small_file(root.path("/proc/1/cgroup"));
  if (!cgroup) return {};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kCgroupMarkers = {
      {{"kubepods", "kubernetes"},
       {"docker", "docker"},
       {"libpod", "podman"},
       {"lxc", "lxc"},
       {"containerd", "containerd"}}};
  for (const auto& [mark, name] : kCgroupMarkers) {
    if (cgroup->find(mark) != std::string::npos) return std::string(name);
  }
  return {};
}

}  // namespace

HostTraits detect_host_traits(const SystemRoot& root) {
  HostTraits host;
  const Result<std::string> cpuinfo = read_file_start(root.path("/proc/cpuinfo"), kMaxFirstCpuinfoBytes);
  const std::string name = find_hypervisor(root);
  const bool is_arm = cpuinfo && cpuinfo->find("CPU implementer") != std::string::npos;
  host.is_virtual = name == "WSL" || (cpuinfo && cpuinfo->find(" hypervisor") != std::string::npos) ||
                    (is_arm && is_arm_virtual_machine(root));
  if (host.is_virtual) {
    host.machine = name.empty() ? "virtual machine" : fmt::format("virtual machine ({})", name);
  } else {
    host.machine = cpuinfo ? "bare metal" : "unknown";
  }
  host.container = find_container_engine(root);
  return host;
}

const HostTraits& ProbeContext::host() const {
  if (!host_traits_) host_traits_ = detect_host_traits(system_root_);
  return *host_traits_;
}

}  // namespace joulemap::sensors

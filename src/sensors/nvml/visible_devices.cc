// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/visible_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/text.h"

namespace joulemap::sensors::nvml {
namespace {

constexpr std::string_view kPciBusOrder = "PCI_BUS_ID";

std::vector<std::size_t> device_indexes_in_cuda_order(const std::vector<ListedDevice>& devices) {
  std::vector<std::size_t> order(devices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return devices[a].pci_bus_id < devices[b].pci_bus_id; });
  return order;
}

bool have_different_device_names(const std::vector<ListedDevice>& devices) {
  return std::any_of(devices.begin(), devices.end(),
                     [&](const ListedDevice& device) { return device.name != devices.front().name; });
}

std::optional<std::size_t> find_device_by_uuid_prefix(const std::vector<ListedDevice>& devices,
                                                      std::string_view prefix) {
  std::optional<std::size_t> matching_index;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].uuid.rfind(prefix, 0) != 0) continue;
    if (matching_index) return std::nullopt;  // ambiguous
    matching_index = i;
  }
  return matching_index;
}

class VisibleDeviceSelection {
 public:
  VisibleDeviceSelection(const std::vector<ListedDevice>& devices, const CudaEnvironment& environment,
                         const MigParentLookup& find_mig_parent)
      : devices_(devices),
        environment_(environment),
        find_mig_parent_(find_mig_parent),
        cuda_order_(device_indexes_in_cuda_order(devices)) {}

  VisibleDevices select_devices() {
    const std::vector<std::string_view> entries = split(*environment_.visible_devices, ',');
    for (const std::string_view raw_entry : entries) {
      const std::string_view entry = trim(raw_entry);
      if (entry == "-1" || (entry.empty() && entries.size() == 1)) break;
      const std::optional<std::size_t> device = find_device(entry);
      if (!device) {
        visible_devices_.diagnostics.add(
            {"cuda_visible_devices_invalid", 1,
             fmt::format("CUDA_VISIBLE_DEVICES: {} is not a GPU of this machine; CUDA ends the "
                         "list there, and so does joulemap",
                         quoted(entry)),
             "nvidia-smi -L"});
        break;
      }
      add_device(*device, entry);
    }
    std::sort(visible_devices_.device_indexes.begin(), visible_devices_.device_indexes.end());
    return std::move(visible_devices_);
  }

 private:
  std::optional<std::size_t> find_device(std::string_view entry) {
    if (entry.rfind("MIG-", 0) == 0) return find_mig_device(entry);
    if (entry.rfind("GPU-", 0) == 0) return find_device_by_uuid_prefix(devices_, entry);
    const std::optional<std::uint64_t> index = parse_u64(entry);
    if (!index || *index >= devices_.size()) return std::nullopt;
    if (have_different_device_names(devices_) && environment_.device_order != kPciBusOrder) {
      visible_devices_.diagnostics.add(
          {"cuda_device_order", 1,
           "CUDA_VISIBLE_DEVICES uses CUDA's order, fastest first, which NVML does not report; "
           "joulemap assumes the order of PCI addresses and may measure another GPU",
           "export CUDA_DEVICE_ORDER=PCI_BUS_ID"});
    }
    return cuda_order_[*index];
  }

  // "MIG-GPU-<uuid>/<gpu instance>/<compute instance>" contains its GPU; since driver 470 an instance has a UUID of its
  // own.
  std::optional<std::size_t> find_mig_device(std::string_view entry) {
    const std::string_view mig_identifier = entry.substr(4);
    const std::optional<std::size_t> parent =
        mig_identifier.rfind("GPU-", 0) == 0
            ? find_device_by_uuid_prefix(devices_, mig_identifier.substr(0, mig_identifier.find('/')))
            : find_mig_parent_(std::string(entry));
    if (!parent) return std::nullopt;
    visible_devices_.diagnostics.add(
        {"mig_whole_gpu", 1,
         fmt::format("CUDA_VISIBLE_DEVICES: {} is one instance of {}; only the whole GPU can be "
                     "measured, and its energy includes its other instances",
                     quoted(entry, 80), devices_[*parent].uuid),
         "to measure one instance, keep the others idle"});
    return parent;
  }

  void add_device(std::size_t device, std::string_view entry) {
    if (std::find(visible_devices_.device_indexes.begin(), visible_devices_.device_indexes.end(), device) ==
        visible_devices_.device_indexes.end()) {
      visible_devices_.device_indexes.push_back(device);
    } else if (entry.rfind("MIG-", 0) != 0) {
      visible_devices_.diagnostics.add(
          {"cuda_visible_devices_repeated", 1,
           fmt::format("CUDA_VISIBLE_DEVICES names {} twice; it is measured once", quoted(entry)),
           "name each GPU once: otherwise CUDA programs may see no GPU"});
    }
  }

  const std::vector<ListedDevice>& devices_;
  const CudaEnvironment& environment_;
  const MigParentLookup& find_mig_parent_;
  std::vector<std::size_t> cuda_order_;
  VisibleDevices visible_devices_;
};

}  // namespace

CudaEnvironment read_cuda_environment() {
  CudaEnvironment environment;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) environment.visible_devices = visible;
  if (const char* order = std::getenv("CUDA_DEVICE_ORDER")) environment.device_order = order;
  return environment;
}

VisibleDevices select_visible_devices(const std::vector<ListedDevice>& devices, const CudaEnvironment& environment,
                                      const MigParentLookup& find_mig_parent) {
  if (environment.visible_devices)
    return VisibleDeviceSelection(devices, environment, find_mig_parent).select_devices();
  VisibleDevices all_devices;
  all_devices.device_indexes.resize(devices.size());
  std::iota(all_devices.device_indexes.begin(), all_devices.device_indexes.end(), std::size_t{0});
  return all_devices;
}

}  // namespace joulemap::sensors::nvml

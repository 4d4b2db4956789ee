// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs a CUDA program may use: CUDA_VISIBLE_DEVICES, matched against the GPUs that NVML lists. Pure functions over
// plain data. The rules are those of the CUDA C++ Programming Guide, "CUDA Environment Variables":
//
//   not set            all GPUs
//   ""                 none
//   "1,0"              by CUDA's index; the first invalid one, or -1, ends the list
//   "GPU-8932f937"     by UUID, or a beginning of it that fits exactly one GPU
//   "MIG-<uuid>", "MIG-GPU-<uuid>/1/0"     one instance of a GPU that is split
//
// CUDA's index is not NVML's. With CUDA_DEVICE_ORDER=PCI_BUS_ID it is the rank of the PCI address. By default the GPU that
// CUDA takes for the fastest comes first and the others follow by PCI address: among GPUs of one name that is the same, so
// we take the rank of the PCI address and say so where the names differ.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"

namespace joulemap::sensors::nvml {

// A GPU as NVML lists it. Texts are empty where NVML does not tell.
struct ListedDevice {
  std::string uuid;
  std::string name;
  std::string pci_bus_id;  // "00000000:3B:00.0": compares in the order of addresses
};

struct CudaEnvironment {
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES
  std::string device_order;                    // CUDA_DEVICE_ORDER
};
CudaEnvironment read_cuda_environment();

struct VisibleDevices {
  std::vector<std::size_t> chosen;  // indices into the list, in its order, each once
  Diagnostics diagnostics;
};

// `find_mig_parent`: the GPU that a MIG instance's UUID belongs to; nothing where that is not known.
using FindMigParent = std::function<std::optional<std::size_t>(const std::string& mig_uuid)>;

VisibleDevices choose_visible(const std::vector<ListedDevice>& devices, const CudaEnvironment& environment,
                              const FindMigParent& find_mig_parent);

}  // namespace joulemap::sensors::nvml

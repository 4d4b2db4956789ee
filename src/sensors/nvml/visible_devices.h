// SPDX-License-Identifier: Apache-2.0
//
// The GPUs that a CUDA program may use: CUDA_VISIBLE_DEVICES, matched against the GPUs that NVML lists. Pure functions
// over plain data. The rules are those of the CUDA C++ Programming Guide, "CUDA Environment Variables":
//
//   not set            all GPUs
//   ""                 none
//   "1,0"              by CUDA's index; the first invalid one, or -1, ends the list
//   "GPU-8932f937"     by UUID, or a prefix of it that matches exactly one GPU
//   "MIG-<uuid>", "MIG-GPU-<uuid>/1/0"     one MIG instance of a GPU
//
// CUDA's index is not NVML's. With CUDA_DEVICE_ORDER=PCI_BUS_ID it is the rank of the PCI address. By default the GPU
// that CUDA considers fastest comes first, and the others follow by PCI address. Among GPUs with the same name both
// orders agree. So we use the rank of the PCI address and add a diagnostic where the names differ.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"

namespace joulemap::sensors::nvml {

// A GPU as NVML lists it. Texts are empty where NVML does not report them.
struct ListedDevice {
  std::string uuid;
  std::string name;
  std::string pci_bus_id;  // "00000000:3B:00.0": text order is address order
};

struct CudaEnvironment {
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES
  std::string device_order;                    // CUDA_DEVICE_ORDER
};
CudaEnvironment read_cuda_environment();

struct VisibleDevices {
  std::vector<std::size_t> device_indexes;  // indices into the list of devices, each once, in its order
  Diagnostics diagnostics;
};

// `find_mig_parent`: returns the index of the GPU that has the MIG instance with this UUID; none where it is unknown.
using MigParentLookup = std::function<std::optional<std::size_t>(const std::string& mig_uuid)>;

VisibleDevices select_visible_devices(const std::vector<ListedDevice>& devices, const CudaEnvironment& environment,
                                      const MigParentLookup& find_mig_parent);

}  // namespace joulemap::sensors::nvml

// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/visible_devices.h"

#include <gtest/gtest.h>

namespace joulemap::sensors::nvml {
namespace {

using DeviceIndices = std::vector<std::size_t>;

// NVML's order is usually that of PCI addresses. Here the last two GPUs are swapped, so that a test fails if the code
// confuses the two orders.
const std::vector<ListedDevice> kThreeGpus = {
    {"GPU-8932f937-0001", "H200", "00000000:1B:00.0"},
    {"GPU-8932f937-0002", "H200", "00000000:CB:00.0"},
    {"GPU-11112222-0003", "H200", "00000000:5D:00.0"},
};

std::optional<std::size_t> find_no_mig_device(const std::string&) { return std::nullopt; }

VisibleDevices select_devices(std::optional<std::string> value, const std::vector<ListedDevice>& devices = kThreeGpus,
                              std::string order = {}) {
  return select_visible_devices(devices, {std::move(value), std::move(order)}, find_no_mig_device);
}

TEST(VisibleDevices, AllDevicesAreVisibleWithoutTheVariable) {
  EXPECT_EQ(select_devices(std::nullopt).device_indexes, (DeviceIndices{0, 1, 2}));
  EXPECT_TRUE(select_devices(std::nullopt).diagnostics.empty());
}

TEST(VisibleDevices, NoDeviceIsVisibleForAnEmptyText) {
  EXPECT_TRUE(select_devices("").device_indexes.empty());
  EXPECT_TRUE(select_devices(" ").device_indexes.empty());
  EXPECT_TRUE(select_devices("").diagnostics.empty());
}

TEST(VisibleDevices, DeviceIndicesFollowTheOrderOfPciAddresses) {
  EXPECT_EQ(select_devices("1").device_indexes, (DeviceIndices{2}));
  EXPECT_EQ(select_devices(" 2 , 0").device_indexes, (DeviceIndices{0, 1}));
}

TEST(VisibleDevices, TheDeviceListEndsAtMinusOneSilently) {
  const VisibleDevices visible = select_devices("0,-1,1");
  EXPECT_EQ(visible.device_indexes, (DeviceIndices{0}));
  EXPECT_TRUE(visible.diagnostics.empty());
}

TEST(VisibleDevices, TheDeviceListEndsAtTheFirstInvalidEntryAndReportsIt) {
  for (const char* text : {"0,7,1", "0,x,1", "0,,1", "0,GPU-nobody,1", "0,MIG-nobody,1", "0,0x,1"}) {
    const VisibleDevices visible = select_devices(text);
    EXPECT_EQ(visible.device_indexes, (DeviceIndices{0})) << text;
    EXPECT_TRUE(visible.diagnostics.contains("cuda_visible_devices_invalid")) << text;
  }
}

TEST(VisibleDevices, DevicesAreFoundByUuidAndUniquePrefix) {
  EXPECT_EQ(select_devices("GPU-8932f937-0002").device_indexes, (DeviceIndices{1}));
  EXPECT_EQ(select_devices("GPU-11").device_indexes, (DeviceIndices{2}));
  EXPECT_TRUE(select_devices("GPU-8932f937").device_indexes.empty());  // a prefix of two GPUs
}

TEST(VisibleDevices, DevicesNamedTwiceAreMeasuredOnce) {
  const VisibleDevices visible = select_devices("0,GPU-8932f937-0001");
  EXPECT_EQ(visible.device_indexes, (DeviceIndices{0}));
  EXPECT_TRUE(visible.diagnostics.contains("cuda_visible_devices_repeated"));
}

TEST(VisibleDevices, DevicesOfDifferentModelsWarnThatTheIndexIsAmbiguous) {
  std::vector<ListedDevice> mixed_gpus = kThreeGpus;
  mixed_gpus[1].name = "RTX 4090";
  EXPECT_TRUE(select_devices("0", mixed_gpus).diagnostics.contains("cuda_device_order"));
  EXPECT_TRUE(select_devices("0", mixed_gpus, "FASTEST_FIRST").diagnostics.contains("cuda_device_order"));
  EXPECT_TRUE(select_devices("0", mixed_gpus, "PCI_BUS_ID").diagnostics.empty());
  EXPECT_TRUE(select_devices("GPU-11", mixed_gpus).diagnostics.empty());
}

TEST(VisibleDevices, TheWholeGpuOfAMigInstanceIsMeasured) {
  const auto parent = [](const std::string& uuid) {
    return uuid == "MIG-c6d4f1ef" ? std::optional<std::size_t>(1) : std::nullopt;
  };
  for (const char* text : {"MIG-c6d4f1ef", "MIG-GPU-8932f937-0002/1/0", "MIG-GPU-8932f937-0002/1/0,MIG-c6d4f1ef"}) {
    const VisibleDevices visible = select_visible_devices(kThreeGpus, {text, ""}, parent);
    EXPECT_EQ(visible.device_indexes, (DeviceIndices{1})) << text;
    EXPECT_TRUE(visible.diagnostics.contains("mig_whole_gpu")) << text;
  }
}

}  // namespace
}  // namespace joulemap::sensors::nvml

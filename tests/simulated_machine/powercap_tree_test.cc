// SPDX-License-Identifier: Apache-2.0
#include "powercap_tree.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/small_file.h"
#include "support/temporary_directory.h"

namespace joulemap::simulated {
namespace {

std::string read_file_text(const std::string& path) {
  const Result<std::string> text = read_small_file(path);
  return text ? *text : text.error().message;
}

TEST(PowercapTree, NamesZonesLikeLinuxAndDomainsLikeTheTruthLog) {
  const std::vector<Zone> zones = list_zones(2, true);
  ASSERT_EQ(zones.size(), 7U);
  EXPECT_EQ(zones[0].id, "intel-rapl:0");
  EXPECT_EQ(zones[0].name, "package-0");
  EXPECT_EQ(zones[5].id, "intel-rapl:1:1");
  EXPECT_EQ(zones[5].folder, "intel-rapl/intel-rapl:1/intel-rapl:1:1");
  EXPECT_EQ(zones[5].name, "dram");
  EXPECT_EQ(zones[5].domain, "dram-1");
  EXPECT_EQ(zones[6].id, "intel-rapl:2");
  EXPECT_EQ(zones[6].name, "psys");
}

TEST(PowercapTree, EveryZoneIsReachedFromTheClassFolder) {
  const TemporaryDirectory root;
  const std::vector<Zone> zones = list_zones(2, true);
  ASSERT_TRUE(build_powercap_tree(root.path(), zones, {1'000'000, 95}).has_value());
  for (const Zone& zone : zones) {
    const std::string folder = root.path() + "/sys/class/powercap/" + zone.id;
    EXPECT_TRUE(std::filesystem::is_symlink(folder));
    EXPECT_EQ(read_file_text(folder + "/name"), zone.name + "\n");
    EXPECT_EQ(read_file_text(folder + "/max_energy_range_uj"), "1000000\n");
  }
  EXPECT_EQ(read_file_text(root.path() + "/sys/class/powercap/intel-rapl/intel-rapl:1/intel-rapl:1:0/name"), "core\n");
}

TEST(PowercapTree, APackageHasAPowerLimitAndItsPartsHaveNone) {
  const TemporaryDirectory root;
  ASSERT_TRUE(build_powercap_tree(root.path(), list_zones(1, false), {1'000'000, 95}).has_value());
  const std::string package = root.path() + "/sys/class/powercap/intel-rapl:0";
  EXPECT_EQ(read_file_text(package + "/constraint_0_name"), "long_term\n");
  EXPECT_EQ(read_file_text(package + "/constraint_0_power_limit_uw"), "95000000\n");
  EXPECT_FALSE(file_exists(package + ":0/constraint_0_name"));
}

TEST(PowercapTree, RefusesARootThatMightBeARealOne) {
  const TemporaryDirectory root;
  std::filesystem::create_directory(root.path() + "/sys");
  const Status build_status = build_powercap_tree(root.path(), list_zones(1, false), {1'000'000, 95});
  ASSERT_FALSE(build_status.has_value());
  EXPECT_EQ(build_status.error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace joulemap::simulated

// SPDX-License-Identifier: Apache-2.0
#include "counter_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "base/small_file.h"
#include "support/temporary_directory.h"

namespace joulemap::simulated {
namespace {

constexpr std::uint64_t kStartUj = 900'000'000;
constexpr std::uint64_t kWrapUj = 1'000'000'000;

class CounterFileTest : public testing::Test {
 protected:
  CounterFile make_counter_file(const FaultPlan& faults = {}, std::uint64_t start_uj = kStartUj) {
    return *CounterFile::create(path(), EnergyCounter(start_uj, kWrapUj), kWrapUj, faults);
  }
  std::string path() const { return folder_.path() + "/energy_uj"; }
  std::string text() const {
    const Result<std::string> text = read_small_file(path());
    return text ? *text : "none";
  }
  mode_t mode() const {
    struct stat info {};
    stat(path().c_str(), &info);
    return info.st_mode & 0777U;
  }

 private:
  TemporaryDirectory folder_;
};

TEST_F(CounterFileTest, ShowsTheStartValueImmediatelyToAllReaders) {
  const CounterFile file = make_counter_file();
  EXPECT_EQ(text(), "900000000\n");
  EXPECT_EQ(mode(), 0444U);
}

TEST_F(CounterFileTest, PadsShortNumbersWithBlanks) {
  CounterFile file = make_counter_file({}, 0);
  EXPECT_EQ(text(), "0        \n");
  ASSERT_TRUE(file.publish(0.001, 0).has_value());
  EXPECT_EQ(text(), "976      \n");
}

TEST_F(CounterFileTest, ClearsALongerTextAfterAWrap) {
  CounterFile file = make_counter_file({}, kWrapUj - 1);
  EXPECT_EQ(text(), "999999999\n");
  ASSERT_TRUE(file.publish(0.0001, 0).has_value());
  EXPECT_EQ(text(), "60       \n");
}

TEST_F(CounterFileTest, FaultsWaitForTheirTime) {
  FaultPlan faults;
  faults.vanish_at_s = 1.0;
  CounterFile file = make_counter_file(faults);
  ASSERT_TRUE(file.publish(1, -1).has_value());
  ASSERT_TRUE(file.publish(1, 0.999).has_value());
  EXPECT_NE(text(), "none");
  ASSERT_TRUE(file.publish(1, 1.0).has_value());
  EXPECT_EQ(text(), "none");
  ASSERT_TRUE(file.publish(2, 1.1).has_value());
  EXPECT_EQ(text(), "none");
}

TEST_F(CounterFileTest, AFrozenCounterKeepsItsText) {
  FaultPlan faults;
  faults.freeze_at_s = 1.0;
  CounterFile file = make_counter_file(faults);
  ASSERT_TRUE(file.publish(1, 0.5).has_value());
  const std::string earlier_text = text();
  ASSERT_TRUE(file.publish(2, 1.5).has_value());
  EXPECT_EQ(text(), earlier_text);
}

TEST_F(CounterFileTest, GarbageStays) {
  FaultPlan faults;
  faults.garbage_at_s = 1.0;
  CounterFile file = make_counter_file(faults);
  ASSERT_TRUE(file.publish(1, 1.0).has_value());
  ASSERT_TRUE(file.publish(2, 2.0).has_value());
  EXPECT_EQ(text(), "not a number\n");
}

TEST_F(CounterFileTest, AResetHappensOnce) {
  FaultPlan faults;
  faults.reset_at_s = 1.0;
  CounterFile file = make_counter_file(faults);
  ASSERT_TRUE(file.publish(3, 1.0).has_value());
  EXPECT_EQ(text(), "0        \n");
  ASSERT_TRUE(file.publish(3.001, 2.0).has_value());
  EXPECT_NE(text(), "0        \n");
}

TEST_F(CounterFileTest, AStepBackSubtracts500JoulesOnce) {
  FaultPlan faults;
  faults.step_back_at_s = 1.0;
  CounterFile file = make_counter_file(faults);
  ASSERT_TRUE(file.publish(0, 1.0).has_value());
  EXPECT_EQ(text(), "400000000\n");
  ASSERT_TRUE(file.publish(0, 2.0).has_value());
  EXPECT_EQ(text(), "400000000\n");
}

TEST_F(CounterFileTest, ADeniedCounterLosesItsModeEvenWhenReplaced) {
  FaultPlan faults;
  faults.deny_at_s = 1.0;
  faults.replaces_file = true;
  CounterFile file = make_counter_file(faults);
  ASSERT_TRUE(file.publish(0, 0.5).has_value());
  EXPECT_EQ(mode(), 0444U);
  ASSERT_TRUE(file.publish(0, 1.0).has_value());
  EXPECT_EQ(mode(), 0U);
  ASSERT_TRUE(file.publish(0, 1.5).has_value());
  EXPECT_EQ(mode(), 0U);
}

TEST_F(CounterFileTest, ATornWriteShowsHalfOfTheNewTextUntilItIsFinished) {
  FaultPlan faults;
  faults.tears_writes = true;
  CounterFile file = make_counter_file(faults, 123'456'789);
  ASSERT_TRUE(file.publish(1, 0).has_value());
  EXPECT_EQ(text(), "124456789\n");  // four new digits, five old
  ASSERT_TRUE(file.finish().has_value());
  EXPECT_EQ(text(), "124456786\n");
}

TEST_F(CounterFileTest, AReplacedFileIsFrozenForEarlierReaders) {
  FaultPlan faults;
  faults.replaces_file = true;
  CounterFile file = make_counter_file(faults);
  const Result<FileDescriptor> earlier_file = open_for_reading(path());
  ASSERT_TRUE(earlier_file.has_value());
  ASSERT_TRUE(file.publish(1, 0).has_value());
  char buffer[16] = {};
  ASSERT_GT(pread(earlier_file->get(), buffer, sizeof buffer - 1, 0), 0);
  EXPECT_STREQ(buffer, "900000000\n");
  EXPECT_NE(text(), "900000000\n");
}

}  // namespace
}  // namespace joulemap::simulated

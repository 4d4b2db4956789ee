// SPDX-License-Identifier: Apache-2.0
#include "capi/sized_struct.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "joulemap/joulemap.h"

namespace joulemap::capi {
namespace {

// jm_options of 0.1.0, frozen: compiled programs use it. Never change it.
struct FirstOptions {
  std::size_t size;
  const char* sensors;
  const char* sysroot;
  double period_s;
};
constexpr std::size_t kFrozenOptions_bytes = sizeof(FirstOptions);

// Options of a future version of the library.
struct LaterOptions {
  std::size_t size;
  const char* sensors;
  const char* sysroot;
  double period_s;
  const char* replay;
  double most_cpu_share;
};

TEST(SizedStruct, TheOptionsOfTheFirstVersionLieWhereTheyDid) {
  EXPECT_EQ(offsetof(FirstOptions, sensors), offsetof(jm_options, sensors));
  EXPECT_EQ(offsetof(FirstOptions, sysroot), offsetof(jm_options, sysroot));
  EXPECT_EQ(offsetof(FirstOptions, period_s), offsetof(jm_options, period_s));
  EXPECT_GE(sizeof(jm_options), sizeof(FirstOptions));
}

TEST(SizedStruct, OfAnOlderProgramIsTakenAndTheNewMembersAreZero) {
  const FirstOptions theirs = {sizeof theirs, "powercap", "/machine", 0.25};
  LaterOptions ours;
  std::memset(&ours, 0xff, sizeof ours);
  const Status copied = copy_in(&theirs, theirs.size, &ours, sizeof ours, kFrozenOptions_bytes, "jm_options");
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_STREQ(ours.sensors, "powercap");
  EXPECT_STREQ(ours.sysroot, "/machine");
  EXPECT_EQ(ours.period_s, 0.25);
  EXPECT_EQ(ours.replay, nullptr);
  EXPECT_EQ(ours.most_cpu_share, 0);
}

TEST(SizedStruct, OfANewerProgramIsTakenWhereItsNewMembersAreZero) {
  const LaterOptions theirs = {sizeof theirs, "estimate", nullptr, 1, nullptr, 0};
  FirstOptions ours;
  ASSERT_TRUE(copy_in(&theirs, theirs.size, &ours, sizeof ours, kFrozenOptions_bytes, "jm_options"));
  EXPECT_STREQ(ours.sensors, "estimate");
  EXPECT_EQ(ours.period_s, 1);
}

TEST(SizedStruct, OfANewerProgramIsRefusedWhereItAsksForWhatWeDoNotKnow) {
  const LaterOptions theirs = {sizeof theirs, nullptr, nullptr, 0, nullptr, 0.01};
  FirstOptions ours;
  const Status copied = copy_in(&theirs, theirs.size, &ours, sizeof ours, kFrozenOptions_bytes, "jm_options");
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code, ErrorCode::usage);
  EXPECT_NE(copied.error().message.find("does not know"), std::string::npos);
}

TEST(SizedStruct, OfASizeThatNoVersionHadIsRefused) {
  FirstOptions theirs = {};
  FirstOptions ours;
  for (const std::size_t size :
       {std::size_t{0}, sizeof(std::size_t), sizeof theirs - 1, kLargestStruct_bytes + 1, SIZE_MAX}) {
    theirs.size = size;
    const Status copied = copy_in(&theirs, size, &ours, sizeof ours, kFrozenOptions_bytes, "jm_options");
    ASSERT_FALSE(copied) << size;
    EXPECT_EQ(copied.error().code, ErrorCode::usage);
  }
}

TEST(SizedStruct, HandsOutNoByteBeyondTheCallersSize) {
  jm_energy ours{};
  std::memset(&ours, 0x55, sizeof ours);
  for (std::size_t size = 0; size <= sizeof(jm_energy) + 16; ++size) {
    alignas(jm_energy) std::array<unsigned char, sizeof(jm_energy) + 64> memory;
    memory.fill(0xee);
    std::memcpy(memory.data(), &size, sizeof size);
    const Status handed = hand_out(ours, reinterpret_cast<jm_energy*>(memory.data()));
    EXPECT_EQ(handed.has_value(), size >= sizeof(std::size_t)) << size;
    const std::size_t filled = handed ? std::min(size, sizeof ours) : sizeof(std::size_t);
    for (std::size_t i = sizeof(std::size_t); i < memory.size(); ++i) {
      ASSERT_EQ(memory[i], i < filled ? 0x55 : 0xee) << "byte " << i << " of a structure of size " << size;
    }
    std::size_t said = 0;
    std::memcpy(&said, memory.data(), sizeof said);
    EXPECT_EQ(said, handed ? filled : size);
  }
}

}  // namespace
}  // namespace joulemap::capi

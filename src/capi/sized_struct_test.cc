// SPDX-License-Identifier: Apache-2.0
#include "capi/sized_struct.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "joulemap/joulemap.h"

namespace joulemap::capi {
namespace {

// jm_options of 0.1.0, frozen: compiled programs use it. Never change it.
struct OptionsV010 {
  std::size_t size;
  const char* sensors;
  const char* sysroot;
  double period_s;
};
constexpr std::size_t kOptionsV010_bytes = sizeof(OptionsV010);

// Options of a future version of the library.
struct LaterOptions {
  std::size_t size;
  const char* sensors;
  const char* sysroot;
  double period_s;
  const char* replay;
  double max_cpu_share;
};

TEST(SizedStruct, OptionsOfTheFirstVersionKeepTheirOffsets) {
  EXPECT_EQ(offsetof(OptionsV010, sensors), offsetof(jm_options, sensors));
  EXPECT_EQ(offsetof(OptionsV010, sysroot), offsetof(jm_options, sysroot));
  EXPECT_EQ(offsetof(OptionsV010, period_s), offsetof(jm_options, period_s));
  EXPECT_GE(sizeof(jm_options), sizeof(OptionsV010));
}

TEST(SizedStruct, AStructOfAnOlderProgramIsAcceptedWithNewMembersZero) {
  const OptionsV010 caller_struct = {sizeof caller_struct, "powercap", "/machine", 0.25};
  LaterOptions own_struct;
  std::memset(&own_struct, 0xff, sizeof own_struct);
  const Status copy_status = copy_struct_from_caller(&caller_struct, caller_struct.size, &own_struct, sizeof own_struct,
                                                     kOptionsV010_bytes, "jm_options");
  ASSERT_TRUE(copy_status) << copy_status.error().message;
  EXPECT_STREQ(own_struct.sensors, "powercap");
  EXPECT_STREQ(own_struct.sysroot, "/machine");
  EXPECT_EQ(own_struct.period_s, 0.25);
  EXPECT_EQ(own_struct.replay, nullptr);
  EXPECT_EQ(own_struct.max_cpu_share, 0);
}

TEST(SizedStruct, AStructOfANewerProgramIsAcceptedWhenItsNewMembersAreZero) {
  const LaterOptions caller_struct = {sizeof caller_struct, "estimate", nullptr, 1, nullptr, 0};
  OptionsV010 own_struct;
  ASSERT_TRUE(copy_struct_from_caller(&caller_struct, caller_struct.size, &own_struct, sizeof own_struct,
                                      kOptionsV010_bytes, "jm_options"));
  EXPECT_STREQ(own_struct.sensors, "estimate");
  EXPECT_EQ(own_struct.period_s, 1);
}

TEST(SizedStruct, AStructOfANewerProgramIsRefusedWhenUnknownMembersAreSet) {
  const LaterOptions caller_struct = {sizeof caller_struct, nullptr, nullptr, 0, nullptr, 0.01};
  OptionsV010 own_struct;
  const Status copy_status = copy_struct_from_caller(&caller_struct, caller_struct.size, &own_struct, sizeof own_struct,
                                                     kOptionsV010_bytes, "jm_options");
  ASSERT_FALSE(copy_status);
  EXPECT_EQ(copy_status.error().code, ErrorCode::usage);
  EXPECT_NE(copy_status.error().message.find("does not support"), std::string::npos);
}

TEST(SizedStruct, AStructOfASizeThatNoVersionHadIsRefused) {
  OptionsV010 caller_struct = {};
  OptionsV010 own_struct;
  for (const std::size_t size :
       {std::size_t{0}, sizeof(std::size_t), sizeof caller_struct - 1, kMaxCallerStruct_bytes + 1, SIZE_MAX}) {
    caller_struct.size = size;
    const Status copy_status =
        copy_struct_from_caller(&caller_struct, size, &own_struct, sizeof own_struct, kOptionsV010_bytes, "jm_options");
    ASSERT_FALSE(copy_status) << size;
    EXPECT_EQ(copy_status.error().code, ErrorCode::usage);
  }
}

TEST(SizedStruct, WritesNoByteBeyondTheCallersSize) {
  jm_energy own_struct{};
  std::memset(&own_struct, 0x55, sizeof own_struct);
  for (std::size_t size = 0; size <= sizeof(jm_energy) + 16; ++size) {
    alignas(jm_energy) std::array<unsigned char, sizeof(jm_energy) + 64> memory;
    memory.fill(0xee);
    std::memcpy(memory.data(), &size, sizeof size);
    const Status copy_status = copy_to_caller(own_struct, reinterpret_cast<jm_energy*>(memory.data()));
    EXPECT_EQ(copy_status.has_value(), size >= sizeof(std::size_t)) << size;
    const std::size_t filled_bytes = copy_status ? std::min(size, sizeof own_struct) : sizeof(std::size_t);
    for (std::size_t i = sizeof(std::size_t); i < memory.size(); ++i) {
      ASSERT_EQ(memory[i], i < filled_bytes ? 0x55 : 0xee) << "byte " << i << " of a structure of size " << size;
    }
    std::size_t filled_size = 0;
    std::memcpy(&filled_size, memory.data(), sizeof filled_size);
    EXPECT_EQ(filled_size, copy_status ? filled_bytes : size);
  }
}

}  // namespace
}  // namespace joulemap::capi

// SPDX-License-Identifier: Apache-2.0
#include "capture/nvtx/nvtx_attach.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace joulemap::capture::nvtx {
namespace {

thread_local std::vector<std::string> recorded_hook_calls;  // calls of the hooks: "+name" for a push, "-" for a pop

constexpr RangeHooks kRangeHooks{
    [](std::string_view name) noexcept { recorded_hook_calls.push_back("+" + std::string(name)); },
    []() noexcept { recorded_hook_calls.emplace_back("-"); }};

// One copy of NVTX, as its header defines it: tables of pointers to the function pointers that it calls.
struct NvtxCopy {
  UntypedFunction core[16] = {};
  UntypedFunction core2[16] = {};
  UntypedFunction* core_table[17] = {};
  UntypedFunction* core2_table[17] = {};
};
NvtxCopy* attached_copy = nullptr;

int get_function_table(std::uint32_t module, UntypedFunction*** functions, unsigned* count) {
  if (module != kModuleCore && module != kModuleCore2) return 0;
  *functions = module == kModuleCore ? attached_copy->core_table : attached_copy->core2_table;
  *count = 16;
  return 1;
}

const void* export_table(std::uint32_t table) {
  static constexpr CallbackTables kCallbackTables{sizeof(CallbackTables), get_function_table};
  return table == kCallbackTablesExportId ? &kCallbackTables : nullptr;
}

class NvtxAttachTest : public ::testing::Test {
 protected:
  NvtxAttachTest() {
    for (unsigned id = 1; id < 16; ++id) {
      copy.core_table[id] = &copy.core[id];
      copy.core2_table[id] = &copy.core2[id];
    }
    attached_copy = &copy;
    recorded_hook_calls.clear();
    attached = attach_nvtx_callbacks(export_table, kRangeHooks);
  }

  int push(const char* name) { return reinterpret_cast<int (*)(const char*)>(copy.core[kRangePushA])(name); }
  int push(const wchar_t* name) { return reinterpret_cast<int (*)(const wchar_t*)>(copy.core[kRangePushW])(name); }
  int push(const EventAttributes& attributes) {
    return reinterpret_cast<int (*)(const EventAttributes*)>(copy.core[kRangePushEx])(&attributes);
  }
  int pop() { return reinterpret_cast<int (*)()>(copy.core[kRangePop])(); }

  static EventAttributes named(MessageType type, const void* message) {
    EventAttributes attributes{};
    attributes.version = 3;
    attributes.size = sizeof attributes;
    attributes.message_type = type;
    attributes.message = message;
    return attributes;
  }

  NvtxCopy copy;
  bool attached = false;
};

TEST_F(NvtxAttachTest, RangesNestAndReportTheirDepth) {
  ASSERT_TRUE(attached);
  EXPECT_EQ(push("outer"), 0);
  EXPECT_EQ(push(L"inn\u00e4r"), 1);
  EXPECT_EQ(pop(), 1);
  EXPECT_EQ(pop(), 0);
  EXPECT_EQ(recorded_hook_calls, (std::vector<std::string>{"+outer", "+inn\xc3\xa4r", "-", "-"}));
}

TEST_F(NvtxAttachTest, AcceptsAllFormsOfNames) {
  push(named(MessageType::ascii, "plain"));
  push(named(MessageType::unicode, L"\U0001f50b \u20ac"));
  push(named(MessageType::none, nullptr));
  for (int i = 0; i < 3; ++i) pop();
  EXPECT_EQ(recorded_hook_calls[0], "+plain");
  EXPECT_EQ(recorded_hook_calls[1], "+\xf0\x9f\x94\x8b \xe2\x82\xac");
  EXPECT_EQ(recorded_hook_calls[2], "+(unnamed)");
}

TEST_F(NvtxAttachTest, DomainsAndRegisteredNamesWork) {
  using RegisterStringFunction = const void* (*)(void*, const char*);
  using DomainPushFunction = int (*)(void*, const EventAttributes*);
  using DomainPopFunction = int (*)(void*);
  std::string text = "ncclAllReduce";
  const void* handle =
      reinterpret_cast<RegisterStringFunction>(copy.core2[kDomainRegisterStringA])(nullptr, text.c_str());
  text = "overwritten";
  const EventAttributes attributes = named(MessageType::registered, handle);
  EXPECT_EQ(reinterpret_cast<DomainPushFunction>(copy.core2[kDomainRangePushEx])(nullptr, &attributes), 0);
  EXPECT_EQ(reinterpret_cast<DomainPopFunction>(copy.core2[kDomainRangePop])(nullptr), 0);
  EXPECT_EQ(recorded_hook_calls, (std::vector<std::string>{"+ncclAllReduce", "-"}));
}

TEST_F(NvtxAttachTest, CreatesADomainForLibrariesThatNeedOne) {
  EXPECT_NE(reinterpret_cast<void* (*)(const char*)>(copy.core2[kDomainCreateA])("TSL"), nullptr);
  EXPECT_NE(reinterpret_cast<void* (*)(const wchar_t*)>(copy.core2[kDomainCreateW])(L"TSL"), nullptr);
}

TEST_F(NvtxAttachTest, IgnoresThePopOfARangeThatBeganBeforeAttach) {
  EXPECT_LT(pop(), 0);
  EXPECT_TRUE(recorded_hook_calls.empty());
}

TEST_F(NvtxAttachTest, ThreadsHaveRangesOfTheirOwn) {
  push("here");
  std::thread([this] {
    EXPECT_LT(pop(), 0);
    EXPECT_EQ(push("there"), 0);
    EXPECT_EQ(pop(), 0);
  }).join();
  EXPECT_EQ(pop(), 0);
}

TEST_F(NvtxAttachTest, RefusesAnUnknownProtocol) {
  EXPECT_FALSE(attach_nvtx_callbacks(nullptr, kRangeHooks));
  EXPECT_FALSE(attach_nvtx_callbacks([](std::uint32_t) -> const void* { return nullptr; }, kRangeHooks));
}

}  // namespace
}  // namespace joulemap::capture::nvtx

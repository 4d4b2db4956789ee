// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/cupti_api.h"

#include <gtest/gtest.h>

#include "capture/cupti/driver_calls.h"
#include "fake_cupti/session_under_test.h"

namespace joulemap::capture::cupti {
namespace {

class FakeCuptiApiTest : public ::testing::Test {
 protected:
  ~FakeCuptiApiTest() override {
    complete_api.reset(kCuda130);
    old.reset(13);
  }
  const fake_cupti::FakeCupti& complete_api = fake_cupti::load_fake_cupti(JOULEMAP_FAKE_CUPTI_LIBRARY);
  const fake_cupti::FakeCupti& old = fake_cupti::load_fake_cupti(JOULEMAP_OLD_FAKE_CUPTI_LIBRARY);
};
using CuptiApiTest = FakeCuptiApiTest;

TEST_F(CuptiApiTest, OpensTheLibraryThatIsNamed) {
  complete_api.reset(kCuda130);
  const Result<CuptiApi> api = open_fake_cupti(JOULEMAP_FAKE_CUPTI_LIBRARY);
  ASSERT_TRUE(api.has_value());
  EXPECT_EQ(api->version(), kCuda130);
  EXPECT_TRUE(api->can_trace_launches() && api->can_set_clock() && api->can_trace_graphs());
  EXPECT_TRUE(api->diagnostics().empty());
}

TEST_F(CuptiApiTest, ReportsTheEffectOfMissingFunctions) {
  old.reset(13);
  const Result<CuptiApi> api = open_fake_cupti(JOULEMAP_OLD_FAKE_CUPTI_LIBRARY);
  ASSERT_TRUE(api.has_value());
  EXPECT_FALSE(api->can_set_clock());
  EXPECT_TRUE(api->diagnostics().contains("cupti_clock"));
  EXPECT_TRUE(api->diagnostics().contains("graphs_without_places"));
}

TEST_F(CuptiApiTest, RefusesVersionsOlderThanCuda11) {
  complete_api.reset(12);
  const Result<CuptiApi> api = open_fake_cupti(JOULEMAP_FAKE_CUPTI_LIBRARY);
  ASSERT_FALSE(api.has_value());
  EXPECT_EQ(api.error().code, ErrorCode::unsupported);
}

TEST_F(CuptiApiTest, UsesANewerVersionAndReportsIt) {
  complete_api.reset(150'200);
  const Result<CuptiApi> api = open_fake_cupti(JOULEMAP_FAKE_CUPTI_LIBRARY);
  ASSERT_TRUE(api.has_value());
  EXPECT_TRUE(api->diagnostics().contains("cupti_newer"));
}

TEST_F(CuptiApiTest, RefusesALibraryThatIsNewerThanTheDriver) {
  complete_api.reset(kCuda130);
  CuptiSearchInputs search;
  search.requested_path = JOULEMAP_FAKE_CUPTI_LIBRARY;
  search.driver_major = 12;
  const Result<CuptiApi> api = CuptiApi::open(search);
  ASSERT_FALSE(api.has_value());
  EXPECT_NE(api.error().message.find("the driver supports only CUDA 12"), std::string::npos);
}

TEST_F(CuptiApiTest, ReportsAMissingNamedLibrary) {
  const Result<CuptiApi> api = open_fake_cupti("/nowhere/libcupti.so.12");
  ASSERT_FALSE(api.has_value());
  EXPECT_NE(api.error().message.find("/nowhere/libcupti.so.12"), std::string::npos);
}

TEST_F(CuptiApiTest, WritesUuidsAsNvmlDoes) {
  complete_api.reset(kCuda130);
  const Result<CuptiApi> api = open_fake_cupti(JOULEMAP_FAKE_CUPTI_LIBRARY);
  ASSERT_TRUE(api.has_value());
  EXPECT_EQ(api->device_uuid(1), "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
  EXPECT_EQ(api->device_uuid(9), std::nullopt);
}

TEST(RealCupti, RealCuptiHasEveryFunctionAndNamesTheCallsThatLaunch) {
  CuptiSearchInputs search;  // finds the toolkit's library, if installed
  const Result<CuptiApi> api = CuptiApi::open(search);
  if (!api) GTEST_SKIP() << api.error().message;
  EXPECT_GE(api->version(), 13U);
  EXPECT_TRUE(api->can_trace_launches());
  EXPECT_NE(api->functions().get_dropped_records, nullptr);
  EXPECT_NE(api->functions().get_result_string, nullptr);
  if (api->version() >= 17) {
    EXPECT_TRUE(api->can_set_clock());
    EXPECT_TRUE(api->can_trace_graphs());
  }
  const DriverCallbackIds calls = find_driver_callback_ids(api->functions());
  EXPECT_GE(calls.launch_calls.size(), 8U);
  EXPECT_GE(calls.copy_calls.size(), 60U);
}

}  // namespace
}  // namespace joulemap::capture::cupti

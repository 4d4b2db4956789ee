// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/record_intake.h"

#include <gtest/gtest.h>

#include "fake_cupti/session_under_test.h"

namespace joulemap::capture::cupti {
namespace {

class RecordIntakeTest : public ::testing::Test {
 protected:
  RecordIntakeTest() { fake_cupti::load_fake_cupti(JOULEMAP_FAKE_CUPTI_LIBRARY).reset(kCuda130); }

  std::uint8_t* request() {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0;
    std::size_t most_records = 1;
    intake.on_buffer_requested(&buffer, &size, &most_records);
    EXPECT_EQ(size, buffer == nullptr ? 0 : kBufferBytes);
    EXPECT_EQ(most_records, 0U);
    return buffer;
  }

  const Result<CuptiApi> api = open_fake(JOULEMAP_FAKE_CUPTI_LIBRARY);
  Heard heard;
  RecordIntake intake{*api, heard, 0};
};

TEST_F(RecordIntakeTest, LendsAlignedBuffersAndUsesThemAgain) {
  std::uint8_t* first = request();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 8, 0U);
  EXPECT_NE(request(), first);
  intake.on_buffer_completed(nullptr, 0, first, 0);
  EXPECT_EQ(request(), first);
}

TEST_F(RecordIntakeTest, AnEmptyBufferIsNoRecords) {
  intake.on_buffer_completed(nullptr, 0, request(), 0);
  EXPECT_TRUE(heard.kernels.empty());
  EXPECT_EQ(intake.counts().records, 0U);
}

TEST_F(RecordIntakeTest, ABufferThatComesBackTwiceIsReadOnce) {
  std::uint8_t* buffer = request();
  intake.on_buffer_completed(nullptr, 0, buffer, 0);
  intake.on_buffer_completed(nullptr, 0, buffer, 0);
  EXPECT_EQ(intake.counts().foreign_buffers, 1U);
}

TEST_F(RecordIntakeTest, LendsNoMoreThanItMay) {
  for (std::size_t i = 0; i < kMostBuffers; ++i) ASSERT_NE(request(), nullptr);
  EXPECT_EQ(request(), nullptr);
}

TEST_F(RecordIntakeTest, LendsNothingOnceItIsClosed) {
  intake.close();
  EXPECT_EQ(request(), nullptr);
}

// Through the whole library: CUPTI drops what it has no buffer for, and the next one that comes back tells.
class DroppedRecordsTest : public SessionUnderTest {};

TEST_F(DroppedRecordsTest, AreADiagnostic) {
  start();
  fake.hold_records(true);
  const int more_than_fit = static_cast<int>(kMostBuffers * kBufferBytes / 216) + 100;
  for (int i = 0; i < more_than_fit; ++i) fake.launch({.keeps_running = true});
  fake.hold_records(false);
  fake.release_records(false);
  fake.end_running();
  poll_for(2);
  EXPECT_TRUE(session().diagnostics().contains("kernels_dropped"));
  EXPECT_EQ(session().counts().records + session().counts().dropped, static_cast<std::uint64_t>(more_than_fit));
}

}  // namespace
}  // namespace joulemap::capture::cupti

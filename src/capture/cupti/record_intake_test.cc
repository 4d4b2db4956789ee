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
    std::size_t max_records = 1;
    intake.on_buffer_requested(&buffer, &size, &max_records);
    EXPECT_EQ(size == 0, buffer == nullptr);
    EXPECT_EQ(max_records, 0U);
    return buffer;
  }

  std::size_t size = 0;  // of the last request
  const Result<CuptiApi> api = open_fake_cupti(JOULEMAP_FAKE_CUPTI_LIBRARY);
  ReceivedEvents received;
  RecordIntake intake{*api, received, 0};
};

TEST_F(RecordIntakeTest, ProvidesAlignedBuffersAndReusesThem) {
  std::uint8_t* first_buffer = request();
  ASSERT_NE(first_buffer, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first_buffer) % 8, 0U);
  EXPECT_NE(request(), first_buffer);
  intake.on_buffer_completed(nullptr, 0, first_buffer, 0);
  EXPECT_EQ(request(), first_buffer);
}

TEST_F(RecordIntakeTest, AnEmptyBufferHasNoRecords) {
  intake.on_buffer_completed(nullptr, 0, request(), 0);
  EXPECT_TRUE(received.kernels.empty());
  EXPECT_EQ(intake.record_counts().forwarded_records, 0U);
}

TEST_F(RecordIntakeTest, ABufferThatComesBackTwiceIsReadOnce) {
  std::uint8_t* buffer = request();
  intake.on_buffer_completed(nullptr, 0, buffer, 0);
  intake.on_buffer_completed(nullptr, 0, buffer, 0);
  EXPECT_EQ(intake.record_counts().foreign_buffers, 1U);
}

TEST_F(RecordIntakeTest, ProvidesBuffersUpToTheLimit) {
  for (std::size_t i = 0; i < kMaxBuffers; ++i) ASSERT_NE(request(), nullptr);
  EXPECT_EQ(request(), nullptr);
}

TEST_F(RecordIntakeTest, ProvidesNoBufferAfterClose) {
  intake.stop_accepting_records();
  EXPECT_EQ(request(), nullptr);
}

TEST_F(RecordIntakeTest, ReportsTheTimeUpToWhichAllRecordsArrived) {
  const std::int64_t before_ns = monotonic_ns();
  EXPECT_EQ(intake.kernels_delivered_until_ns(before_ns), before_ns) << "CUPTI has nothing";
  std::uint8_t* first_buffer = request();
  const std::int64_t between_ns = monotonic_ns();
  request();
  const std::int64_t after_ns = monotonic_ns();
  EXPECT_LE(intake.kernels_delivered_until_ns(after_ns), between_ns);
  intake.on_buffer_completed(nullptr, 0, first_buffer, 0);
  EXPECT_GE(intake.kernels_delivered_until_ns(after_ns), between_ns);
  EXPECT_LE(intake.kernels_delivered_until_ns(after_ns), after_ns);
  const std::int64_t later_ns = after_ns + 60 * kNanosecondsPerSecond;
  EXPECT_GT(intake.kernels_delivered_until_ns(later_ns), after_ns) << "nothing is waited for that long";
  intake.abandon_lent_buffers();
  EXPECT_EQ(intake.kernels_delivered_until_ns(later_ns), later_ns);
}

TEST_F(RecordIntakeTest, AcceptsABufferThatWasGivenUp) {
  std::uint8_t* buffer = request();
  intake.abandon_lent_buffers();
  intake.on_buffer_completed(nullptr, 0, buffer, 0);
  EXPECT_EQ(intake.record_counts().foreign_buffers, 0U);
  EXPECT_EQ(request(), buffer);
}

TEST(BufferSizePolicy, GrowsFastFillingBuffersAndShrinksSlowOnes) {
  BufferSizePolicy size_policy;
  for (int i = 0; i < 20; ++i) size_policy.adapt_to_fill_time(kNanosecondsPerMillisecond);
  EXPECT_EQ(size_policy.next_buffer_bytes(), kMaxBufferBytes);
  const std::size_t initial_buffer_bytes = size_policy.next_buffer_bytes();
  size_policy.adapt_to_fill_time(kNanosecondsPerSecond / 4);
  EXPECT_EQ(size_policy.next_buffer_bytes(), initial_buffer_bytes);
  for (int i = 0; i < 20; ++i) size_policy.adapt_to_fill_time(kNanosecondsPerSecond);
  EXPECT_EQ(size_policy.next_buffer_bytes(), kMinBufferBytes);
}

// End to end: CUPTI drops records without a buffer; the next returned buffer reports how many.
class DroppedRecordsTest : public SessionUnderTest {};

TEST_F(DroppedRecordsTest, DroppedRecordsAreReported) {
  start();
  fake.set_records_held(true);
  const int overflowing_launch_count = static_cast<int>(kMaxBuffers * kMaxBufferBytes / 216) + 100;
  for (int i = 0; i < overflowing_launch_count; ++i) fake.launch({.keeps_running = true});
  fake.set_records_held(false);
  fake.release_records(false);
  fake.end_running_records();
  poll_for(2);
  EXPECT_TRUE(session().diagnostics().contains("kernels_dropped"));
  EXPECT_EQ(session().record_counts().forwarded_records + session().record_counts().dropped_records,
            static_cast<std::uint64_t>(overflowing_launch_count));
}

class UnreadableRecordsTest : public SessionUnderTest {};

TEST_F(UnreadableRecordsTest, UnreadableRecordsAreReportedAndTheNextBufferIsRead) {
  start();
  constexpr int kInvalidKind = 21;
  fake.set_function_result("cuptiActivityGetNextRecord", kInvalidKind);
  fake.launch({});
  poll_for(2);
  EXPECT_EQ(session().record_counts().forwarded_records, 0U);
  EXPECT_TRUE(session().diagnostics().contains("kernels_unreadable"));
  fake.set_function_result("cuptiActivityGetNextRecord", 0);
  fake.launch({});
  poll_for(2);
  EXPECT_EQ(session().record_counts().forwarded_records, 1U);
  EXPECT_EQ(session().record_counts().broken_buffers, 1U);
}

}  // namespace
}  // namespace joulemap::capture::cupti

// SPDX-License-Identifier: Apache-2.0
#include "recording/activity_codec.h"

#include <gtest/gtest.h>

#include <random>

#include "recording/chunk.h"

namespace joulemap::recording {
namespace {

constexpr std::int64_t kBegin_ns = 1'000'000'000'000;

// A training step on a GPU: some hundred kernels on one stream, each about as long as in the previous step.
Activity training(std::size_t steps, std::size_t kernels_per_step) {
  std::mt19937_64 random(7);
  Activity activity;
  activity.begin_ns = kBegin_ns;
  std::int64_t now_ns = kBegin_ns + 1024;
  std::uint32_t correlation = 100;
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::uint32_t i = 0; i < kernels_per_step; ++i) {
      const std::int64_t usual_ns = 4'000 + (i * 7919 % 97) * 1'000;
      const auto jitter = static_cast<std::int64_t>(random() % 40) * 32;
      const std::int64_t start_ns = now_ns + 32 * static_cast<std::int64_t>(30 + random() % 30);
      now_ns = start_ns + usual_ns / 32 * 32 + jitter;
      activity.kernels.push_back({start_ns, now_ns, i % 61, 0, i / 4, correlation += 3, 0});
    }
  }
  activity.end_ns = now_ns;
  return activity;
}

bool are_equal_kernels(const Kernel& a, const Kernel& b) {
  return a.start_ns == b.start_ns && a.end_ns == b.end_ns && a.class_id == b.class_id && a.queue == b.queue &&
         a.scope == b.scope && a.correlation == b.correlation && a.bytes == b.bytes;
}

TEST(ActivityCodec, RoundTripsAllFields) {
  Activity activity = training(3, 200);
  activity.scopes = {{1, 0, ScopeKind::phase, "forward"}, {2, 1, ScopeKind::module, "layer1.0.conv1"}};
  activity.classes = {{5, KernelKind::kernel, "_ZN2at6nativeE", {8, 4, 1}, {256, 1, 1}},
                      {6, KernelKind::copy, "HtoD", {}, {}}};
  activity.queues = {{0, "GPU-1", 0, 1, 7}};
  activity.scope_tallies = {{2, 17, 3, 64'000, 32'000, 96'000}};
  activity.kernel_tallies = {{5, 0, 2, 12, 3'200'000}};
  activity.waits = {{0, 2, WaitKind::synchronization, 3, 64'000}, {0, 1, WaitKind::host, 1, 3200}};
  activity.steps = {{41, kBegin_ns, kBegin_ns + 32'000'000, 0xABCDEF0123456789u, 200, 31'999'968, true, false}};
  activity.shares = {{1, 2, 3, 4096}};
  activity.kernels[5].bytes = 4096;
  const auto decoded = decode_activity(encode_activity(activity));
  ASSERT_TRUE(decoded);
  const Activity& decoded_activity = decoded->activity;
  EXPECT_EQ(decoded_activity.begin_ns, activity.begin_ns);
  EXPECT_EQ(decoded_activity.end_ns, activity.end_ns);
  ASSERT_EQ(decoded_activity.scopes.size(), 2u);
  EXPECT_EQ(decoded_activity.scopes[1].name, "layer1.0.conv1");
  EXPECT_EQ(decoded_activity.scopes[1].parent, 1u);
  EXPECT_EQ(decoded_activity.classes[0].grid, activity.classes[0].grid);
  EXPECT_EQ(decoded_activity.classes[1].kind, KernelKind::copy);
  EXPECT_EQ(decoded_activity.queues[0].stream, 7u);
  EXPECT_EQ(decoded_activity.scope_tallies[0].helper_threads_cpu_ns, 96'000);
  EXPECT_EQ(decoded_activity.scope_tallies[0].sampled_count, 3u);
  EXPECT_EQ(decoded_activity.kernel_tallies[0].time_ns, 3'200'000);
  ASSERT_EQ(decoded_activity.waits.size(), 2u);
  EXPECT_EQ(decoded_activity.waits[0].kind, WaitKind::synchronization);
  EXPECT_EQ(decoded_activity.waits[0].time_ns, 64'000);
  EXPECT_EQ(decoded_activity.waits[1].scope, 1u);
  EXPECT_EQ(decoded_activity.steps[0].kernel_sequence_hash, activity.steps[0].kernel_sequence_hash);
  EXPECT_EQ(decoded_activity.steps[0].number, 41);
  EXPECT_EQ(decoded_activity.shares[0].time_ns, 4096);
  EXPECT_EQ(decoded_activity.shares[0].coarse_scope, 1u);
  EXPECT_TRUE(decoded_activity.steps[0].is_traced && !decoded_activity.steps[0].has_kernel_records);
  ASSERT_EQ(decoded_activity.kernels.size(), activity.kernels.size());
  for (std::size_t i = 0; i < decoded_activity.kernels.size(); ++i)
    ASSERT_TRUE(are_equal_kernels(decoded_activity.kernels[i], activity.kernels[i])) << i;
}

TEST(ActivityCodec, SplitsActivityThatExceedsAChunk) {
  Activity activity = training(100, 2000);
  const std::vector<Kernel> original_kernels = activity.kernels;
  for (std::uint32_t i = 1; i < 50'000; ++i)
    activity.scopes.push_back({i, 0, ScopeKind::region, std::string(1000, 'x')});
  std::vector<Kernel> decoded_activity;
  std::size_t scopes = 0;
  for (const Activity& part : split_activity(std::move(activity))) {
    const std::string payload = encode_activity(part);
    ASSERT_LE(payload.size(), kMaxPayloadBytes);
    const auto decoded = decode_activity(payload);
    ASSERT_TRUE(decoded);
    decoded_activity.insert(decoded_activity.end(), decoded->activity.kernels.begin(), decoded->activity.kernels.end());
    scopes += decoded->activity.scopes.size();
  }
  EXPECT_EQ(scopes, 49'999u);
  ASSERT_EQ(decoded_activity.size(), original_kernels.size());
  for (std::size_t i = 0; i < decoded_activity.size(); ++i)
    ASSERT_TRUE(are_equal_kernels(decoded_activity[i], original_kernels[i])) << i;
}

TEST(ActivityCodec, StoresAKernelOfATrainingLoopInFewBytes) {
  const Activity activity = training(30, 737);
  const std::string chunk = make_chunk(ChunkType::activity, 0, encode_activity(activity));
  const double bytes = static_cast<double>(chunk.size()) / static_cast<double>(activity.kernels.size());
  RecordProperty("bytes_a_kernel", std::to_string(bytes));
  EXPECT_LT(bytes, 4.0);
}

TEST(ActivityCodec, RefusesInvalidBytes) {
  const std::string payload = encode_activity(training(2, 50));
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(decode_activity(std::string_view(payload).substr(0, size))) << size;
  }
  std::mt19937_64 random(11);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged_payload = payload;
    damaged_payload[random() % damaged_payload.size()] = static_cast<char>(random());
    decode_activity(damaged_payload);  // any result is allowed, but no crash
  }
}

}  // namespace
}  // namespace joulemap::recording

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "report/export/tensorboard_events.h"
#include "report/export/tensorboard_export.h"

namespace joulemap::report {
namespace {

double sum_bucket_counts(const std::vector<HistogramBucket>& buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), 0.0,
                         [](double sum, const HistogramBucket& bucket) { return sum + bucket.count; });
}

// The payloads of the TFRecords in `file`, without checking checksums: the tests of tfrecord.h do.
std::vector<std::string> tfrecord_payloads(const std::string& file) {
  std::vector<std::string> records;
  for (std::size_t offset = 0; offset + 12 <= file.size();) {
    std::uint64_t size = 0;
    for (int i = 7; i >= 0; --i)
      size = size << 8 | static_cast<unsigned char>(file[offset + static_cast<std::size_t>(i)]);
    records.push_back(file.substr(offset + 12, size));
    offset += 16 + size;
  }
  return records;
}

bool has_record_with_text(const std::vector<std::string>& records, std::string_view text) {
  return std::ranges::any_of(records,
                             [&](const std::string& record) { return record.find(text) != std::string::npos; });
}

RunView make_two_step_view() {
  RunView view;
  view.run.command = {"python", "train.py", "--lr", "0.1", "--amp", "--name=\xff"};
  view.run.start_unix_ns = 1'790'000'000'000'000'000;
  view.run.elapsed_s = 2;
  view.steps = {{.number = 4, .begin_s = 0, .end_s = 1, .time_s = 1, .energy_j = 10, .loss = 2},
                {.number = 5, .begin_s = 1, .end_s = 2, .time_s = 1, .energy_j = {}, .loss = {}}};
  return view;
}

TEST(Tensorboard, BucketsContainEveryValueOnce) {
  const std::vector<double> values = {1, 1, 2, 3, 10};
  const std::vector<HistogramBucket> buckets = make_histogram_buckets(values, 9);
  ASSERT_EQ(buckets.size(), 9u);
  EXPECT_EQ(sum_bucket_counts(buckets), 5);
  EXPECT_EQ(buckets.front().low, 1);
  EXPECT_EQ(buckets.front().count, 2);
  EXPECT_EQ(buckets.back().high, 10);
  EXPECT_EQ(buckets.back().count, 1);
}

TEST(Tensorboard, EqualValuesFormOneBucket) {
  const std::vector<double> values = {0.02, 0.02, 0.02};
  const std::vector<HistogramBucket> buckets = make_histogram_buckets(values);
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_LT(buckets[0].low, 0.02);
  EXPECT_GT(buckets[0].high, 0.02);
  EXPECT_EQ(buckets[0].count, 3);
  EXPECT_TRUE(make_histogram_buckets({}).empty());
}

TEST(Tensorboard, OmitsAnUnknownEnergy) {
  RunView view = make_two_step_view();
  EXPECT_TRUE(has_record_with_text(tfrecord_payloads(tensorboard_file(view, {}, TensorboardFolderSharing::exclusive)),
                                   "joulemap_step/energy_j"));
  view.steps[0].energy_j.reset();
  const std::vector<std::string> records =
      tfrecord_payloads(tensorboard_file(view, {}, TensorboardFolderSharing::exclusive));
  EXPECT_FALSE(has_record_with_text(records, "joulemap_step/energy_j"));
  EXPECT_TRUE(has_record_with_text(records, "joulemap_step/time_s"));
}

TEST(Tensorboard, DoesNotOverwriteExistingHparamsColumns) {
  const RunView view = make_two_step_view();
  EXPECT_TRUE(has_record_with_text(tfrecord_payloads(tensorboard_file(view, {}, TensorboardFolderSharing::exclusive)),
                                   "_hparams_/experiment"));
  const std::vector<std::string> shared_folder_records =
      tfrecord_payloads(tensorboard_file(view, {}, TensorboardFolderSharing::shared));
  EXPECT_FALSE(has_record_with_text(shared_folder_records, "_hparams_/experiment"));
  EXPECT_TRUE(has_record_with_text(shared_folder_records, "_hparams_/session_start_info"));
}

TEST(Tensorboard, ReplacesInvalidUtf8) {
  EXPECT_FALSE(has_record_with_text(
      tfrecord_payloads(tensorboard_file(make_two_step_view(), {}, TensorboardFolderSharing::exclusive)), "\xff"));
}

}  // namespace
}  // namespace joulemap::report

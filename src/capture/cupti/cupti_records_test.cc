// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/cupti_records.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace joulemap::capture::cupti {
namespace {

// Bytes of a record at the offsets of the CUPTI reference.
class RecordBytes {
 public:
  explicit RecordBytes(RecordKind kind) { at(0, kind); }
  template <class Value>
  RecordBytes& at(std::size_t offset, Value value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
    return *this;
  }
  const Record* record() const { return reinterpret_cast<const Record*>(bytes_.data()); }

 private:
  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(216, 0);
};

const RecordLayout& newest_layout() { return *find_record_layout(130'001)->layout; }

TEST(CuptiRecords, ReadsAllFieldsOfAKernel) {
  RecordBytes bytes(RecordKind::concurrent_kernel);
  bytes.at(16, std::uint64_t{1000}).at(24, std::uint64_t{3000}).at(40, 2U).at(44, 3U).at(48, 4U);
  bytes.at(52, 10U).at(56, 11U).at(60, 12U).at(64, 20U).at(68, 21U).at(72, 22U);
  bytes.at(92, 99U).at(104, static_cast<const char*>("gemm")).at(144, std::uint64_t{5});
  KernelActivityRecord kernel_record;
  ASSERT_EQ(decode_record(newest_layout(), bytes.record(), kernel_record), DecodeOutcome::complete);
  EXPECT_EQ(kernel_record.kind, KernelKind::kernel);
  EXPECT_EQ(kernel_record.name, "gemm");
  EXPECT_EQ(kernel_record.start_ns, 1000);
  EXPECT_EQ(kernel_record.end_ns, 3000);
  EXPECT_EQ(kernel_record.device_ordinal, 2U);
  EXPECT_EQ(kernel_record.context, 3U);
  EXPECT_EQ(kernel_record.stream, 4U);
  EXPECT_EQ(kernel_record.grid, (std::array<std::uint32_t, 3>{10, 11, 12}));
  EXPECT_EQ(kernel_record.block, (std::array<std::uint32_t, 3>{20, 21, 22}));
  EXPECT_EQ(kernel_record.correlation, 99U);
  EXPECT_EQ(kernel_record.graph_node, 5U);
}

TEST(CuptiRecords, NamesACopyByItsDirection) {
  RecordBytes bytes(RecordKind::copy);
  bytes.at(4, std::uint8_t{2}).at(8, std::uint64_t{4096}).at(16, std::uint64_t{1}).at(24, std::uint64_t{2}).at(44, 7U);
  KernelActivityRecord kernel_record;
  ASSERT_EQ(decode_record(newest_layout(), bytes.record(), kernel_record), DecodeOutcome::complete);
  EXPECT_EQ(kernel_record.kind, KernelKind::copy);
  EXPECT_EQ(kernel_record.name, "DtoH");
  EXPECT_EQ(kernel_record.bytes, 4096U);
  EXPECT_EQ(kernel_record.correlation, 7U);
  bytes.at(4, std::uint8_t{200});
  decode_record(newest_layout(), bytes.record(), kernel_record);
  EXPECT_EQ(kernel_record.name, "unknown direction");
}

TEST(CuptiRecords, ReadsTheCorrelationOfAPeerCopy) {
  RecordBytes bytes(RecordKind::peer_copy);
  bytes.at(4, std::uint8_t{10}).at(16, std::uint64_t{1}).at(24, std::uint64_t{2}).at(44, 1U).at(60, 8U);
  KernelActivityRecord kernel_record;
  ASSERT_EQ(decode_record(newest_layout(), bytes.record(), kernel_record), DecodeOutcome::complete);
  EXPECT_EQ(kernel_record.name, "PtoP");
  EXPECT_EQ(kernel_record.correlation, 8U);
}

TEST(CuptiRecords, ReadsMemsetsAndWholeGraphs) {
  RecordBytes fill(RecordKind::fill);
  fill.at(8, std::uint64_t{64}).at(16, std::uint64_t{1}).at(24, std::uint64_t{2}).at(44, 9U);
  KernelActivityRecord kernel_record;
  ASSERT_EQ(decode_record(newest_layout(), fill.record(), kernel_record), DecodeOutcome::complete);
  EXPECT_EQ(kernel_record.kind, KernelKind::fill);
  EXPECT_EQ(kernel_record.bytes, 64U);
  RecordBytes graph(RecordKind::graph);
  graph.at(4, 11U).at(8, std::uint64_t{5}).at(16, std::uint64_t{6}).at(24, 1U).at(36, 3U);
  ASSERT_EQ(decode_record(newest_layout(), graph.record(), kernel_record), DecodeOutcome::complete);
  EXPECT_EQ(kernel_record.kind, KernelKind::graph);
  EXPECT_EQ(kernel_record.correlation, 11U);
  EXPECT_EQ(kernel_record.device_ordinal, 1U);
  EXPECT_EQ(kernel_record.bytes, 0U) << "nothing is left of the record before";
}

TEST(CuptiRecords, ReadsAKernelWithoutAName) {
  RecordBytes bytes(RecordKind::kernel);
  bytes.at(16, std::uint64_t{1}).at(24, std::uint64_t{2});
  KernelActivityRecord kernel_record;
  ASSERT_EQ(decode_record(newest_layout(), bytes.record(), kernel_record), DecodeOutcome::complete);
  EXPECT_EQ(kernel_record.name, "unnamed kernel");
}

TEST(CuptiRecords, ClassifiesIncompleteAndUnknownRecords) {
  KernelActivityRecord kernel_record;
  EXPECT_EQ(decode_record(newest_layout(), RecordBytes(RecordKind::concurrent_kernel).record(), kernel_record),
            DecodeOutcome::incomplete);
  EXPECT_EQ(decode_record(newest_layout(), RecordBytes(static_cast<RecordKind>(900)).record(), kernel_record),
            DecodeOutcome::unknown);
}

TEST(CuptiRecords, LayoutsAreKnownFromCuda11On) {
  EXPECT_FALSE(find_record_layout(12));
  for (const std::uint32_t version : {13U, 22U, 28U, 130'000U, 130'001U}) {
    EXPECT_EQ(find_record_layout(version)->layout_match, LayoutMatch::known) << version;
  }
  EXPECT_EQ(find_record_layout(130'100)->layout_match, LayoutMatch::newer_than_known);
  EXPECT_EQ(cupti_version_text(22), "CUDA 12.4");
  EXPECT_EQ(cupti_version_text(130'201), "CUDA 13.2");
  EXPECT_EQ(cuda_major_of_cupti(18), 11);
  EXPECT_EQ(cuda_major_of_cupti(130'001), 13);
}

}  // namespace
}  // namespace joulemap::capture::cupti

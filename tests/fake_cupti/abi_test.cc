// SPDX-License-Identifier: Apache-2.0
//
// Compares our declarations of CUPTI with NVIDIA's headers, where installed. It checks the oldest and the newest layout
// of each record: a member at the same offset in both has not moved in between.
#include <cupti.h>
#include <cupti_activity_deprecated.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "capture/cupti/cupti_abi.h"
#include "capture/cupti/cupti_records.h"
#include "capture/nvtx/nvtx_attach.h"
#include "nvtx3/nvToolsExt.h"

namespace joulemap::capture::cupti {
namespace {

static_assert(static_cast<int>(CuptiResult::max_limit_reached) == CUPTI_ERROR_MAX_LIMIT_REACHED);
static_assert(static_cast<int>(CuptiResult::not_initialized) == CUPTI_ERROR_NOT_INITIALIZED);
static_assert(static_cast<int>(CuptiResult::insufficient_privileges) == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
static_assert(static_cast<int>(CuptiResult::multiple_subscribers) == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
static_assert(static_cast<int>(CallbackDomain::driver) == CUPTI_CB_DOMAIN_DRIVER_API);
static_assert(static_cast<int>(CallbackDomain::resource) == CUPTI_CB_DOMAIN_RESOURCE);
static_assert(kGraphNodeCreated == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
static_assert(kGraphNodeCloned == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
static_assert(kApiEnter == CUPTI_API_ENTER);
static_assert(kApiExit == CUPTI_API_EXIT);
static_assert(kFlushForced == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
static_assert(static_cast<int>(RecordKind::copy) == CUPTI_ACTIVITY_KIND_MEMCPY);
static_assert(static_cast<int>(RecordKind::fill) == CUPTI_ACTIVITY_KIND_MEMSET);
static_assert(static_cast<int>(RecordKind::kernel) == CUPTI_ACTIVITY_KIND_KERNEL);
static_assert(static_cast<int>(RecordKind::concurrent_kernel) == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert(static_cast<int>(RecordKind::peer_copy) == CUPTI_ACTIVITY_KIND_MEMCPY2);
static_assert(static_cast<int>(RecordKind::graph) == CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
static_assert(sizeof(ApiCall) == sizeof(CUpti_CallbackData));
static_assert(offsetof(ApiCall, enter_or_exit) == offsetof(CUpti_CallbackData, callbackSite));
static_assert(offsetof(ApiCall, correlation) == offsetof(CUpti_CallbackData, correlationId));
static_assert(offsetof(ResourceData, resource_descriptor) == offsetof(CUpti_ResourceData, resourceDescriptor));
static_assert(offsetof(GraphChange, changed_node) == offsetof(CUpti_GraphData, node));
static_assert(offsetof(GraphChange, original_node) == offsetof(CUpti_GraphData, originalNode));
static_assert(sizeof(nvtx::EventAttributes) == sizeof(nvtxEventAttributes_t));
static_assert(offsetof(nvtx::EventAttributes, message_type) == offsetof(nvtxEventAttributes_t, messageType));
static_assert(offsetof(nvtx::EventAttributes, message) == offsetof(nvtxEventAttributes_t, message));
static_assert(nvtx::kRangePop == NVTX_CBID_CORE_RangePop && nvtx::kRangePushEx == NVTX_CBID_CORE_RangePushEx);
static_assert(nvtx::kDomainRangePushEx == NVTX_CBID_CORE2_DomainRangePushEx);
static_assert(nvtx::kDomainRangePop == NVTX_CBID_CORE2_DomainRangePop);
static_assert(nvtx::kDomainRegisterStringA == NVTX_CBID_CORE2_DomainRegisterStringA);

template <class NvidiaRecord>
NvidiaRecord record_with_common_members(CUpti_ActivityKind kind) {
  NvidiaRecord record{};
  record.kind = kind;
  record.start = 1000;
  record.end = 2000;
  record.deviceId = 3;
  record.contextId = 4;
  record.streamId = 5;
  record.correlationId = 6;
  return record;
}

template <class NvidiaRecord>
KernelActivityRecord read(const NvidiaRecord& record) {
  KernelActivityRecord kernel_record;
  const RecordLayout& layout = *find_record_layout(CUPTI_API_VERSION)->layout;
  EXPECT_EQ(decode_record(layout, reinterpret_cast<const Record*>(&record), kernel_record), DecodeOutcome::complete);
  EXPECT_EQ(kernel_record.start_ns, 1000);
  EXPECT_EQ(kernel_record.end_ns, 2000);
  EXPECT_EQ(kernel_record.device_ordinal, 3U);
  EXPECT_EQ(kernel_record.context, 4U);
  EXPECT_EQ(kernel_record.stream, 5U);
  EXPECT_EQ(kernel_record.correlation, 6U);
  return kernel_record;
}

template <class NvidiaRecord>
void expect_kernel_is_read() {
  auto record = record_with_common_members<NvidiaRecord>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  record.gridX = 10;
  record.gridZ = 12;
  record.blockY = 21;
  record.name = "gemm";
  record.graphNodeId = 77;
  const KernelActivityRecord kernel_record = read(record);
  EXPECT_EQ(kernel_record.name, "gemm");
  EXPECT_EQ(kernel_record.grid[0], 10U);
  EXPECT_EQ(kernel_record.grid[2], 12U);
  EXPECT_EQ(kernel_record.block[1], 21U);
  EXPECT_EQ(kernel_record.graph_node, 77U);
}

template <class NvidiaRecord>
KernelActivityRecord expect_bytes_are_read(CUpti_ActivityKind kind) {
  auto record = record_with_common_members<NvidiaRecord>(kind);
  record.bytes = 4096;
  record.graphNodeId = 78;
  if constexpr (!std::is_same_v<NvidiaRecord, CUpti_ActivityMemset2> &&
                !std::is_same_v<NvidiaRecord, CUpti_ActivityMemset4>) {
    record.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  }
  const KernelActivityRecord kernel_record = read(record);
  EXPECT_EQ(kernel_record.bytes, 4096U);
  EXPECT_EQ(kernel_record.graph_node, 78U);
  return kernel_record;
}

TEST(CuptiAbi, KernelsAreWhereNvidiasHeadersPutThem) {
  expect_kernel_is_read<CUpti_ActivityKernel5>();
  expect_kernel_is_read<CUpti_ActivityKernel9>();
}

TEST(CuptiAbi, CopiesAndFillsAreWhereNvidiasHeadersPutThem) {
  EXPECT_EQ(expect_bytes_are_read<CUpti_ActivityMemcpy3>(CUPTI_ACTIVITY_KIND_MEMCPY).name, "DtoH");
  EXPECT_EQ(expect_bytes_are_read<CUpti_ActivityMemcpy5>(CUPTI_ACTIVITY_KIND_MEMCPY).name, "DtoH");
  EXPECT_EQ(expect_bytes_are_read<CUpti_ActivityMemcpyPtoP2>(CUPTI_ACTIVITY_KIND_MEMCPY2).name, "DtoH");
  EXPECT_EQ(expect_bytes_are_read<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2).name, "DtoH");
  EXPECT_EQ(expect_bytes_are_read<CUpti_ActivityMemset2>(CUPTI_ACTIVITY_KIND_MEMSET).name, "fill");
  EXPECT_EQ(expect_bytes_are_read<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET).name, "fill");
}

TEST(CuptiAbi, WholeGraphsAreWhereNvidiasHeadersPutThem) {
  const auto record = record_with_common_members<CUpti_ActivityGraphTrace>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  EXPECT_EQ(read(record).kind, KernelKind::graph);
}

#if CUPTI_API_VERSION >= 130000
TEST(CuptiAbi, TheNewestRecordsAreWhereNvidiasHeadersPutThem) {
  expect_kernel_is_read<CUpti_ActivityKernel10>();
  EXPECT_EQ(expect_bytes_are_read<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY).name, "DtoH");
  EXPECT_EQ(read(record_with_common_members<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)).kind,
            KernelKind::graph);
}
#endif

}  // namespace
}  // namespace joulemap::capture::cupti

// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/cupti_records.h"

#include <cstring>
#include <iterator>
#include <string_view>

namespace joulemap::capture::cupti {
namespace {

// Member offsets in bytes of CUpti_ActivityKernel5 to 10, Memcpy3 to 6, Memset2 to 4, MemcpyPtoP2 to 4, GraphTrace and
// GraphTrace2.
constexpr RecordOffsets kRecordOffsetsSinceCuda11[] = {
    {.record_kind = RecordKind::concurrent_kernel,
     .kind = KernelKind::kernel,
     .start = 16,
     .end = 24,
     .device = 40,
     .context = 44,
     .stream = 48,
     .correlation = 92,
     .graph_node = 144,
     .grid = 52,
     .block = 64,
     .name = 104},
    {.record_kind = RecordKind::copy,
     .kind = KernelKind::copy,
     .start = 16,
     .end = 24,
     .device = 32,
     .context = 36,
     .stream = 40,
     .correlation = 44,
     .graph_node = 64,
     .bytes = 8,
     .copy_kind = 4},
    {.record_kind = RecordKind::fill,
     .kind = KernelKind::fill,
     .start = 16,
     .end = 24,
     .device = 32,
     .context = 36,
     .stream = 40,
     .correlation = 44,
     .graph_node = 64,
     .bytes = 8},
    {.record_kind = RecordKind::peer_copy,
     .kind = KernelKind::copy,
     .start = 16,
     .end = 24,
     .device = 32,
     .context = 36,
     .stream = 40,
     .correlation = 60,
     .graph_node = 72,
     .bytes = 8,
     .copy_kind = 4},
    {.record_kind = RecordKind::graph,
     .kind = KernelKind::graph,
     .start = 8,
     .end = 16,
     .device = 24,
     .context = 32,
     .stream = 36,
     .correlation = 4},
};

constexpr std::uint32_t kFirstCuda11Version = 13;
constexpr std::uint32_t kNewestKnownVersion = 130'099;  // CUDA 13.0 and its updates

constexpr RecordLayout kRecordLayouts[] = {
    {kFirstCuda11Version, kNewestKnownVersion, kRecordOffsetsSinceCuda11, std::size(kRecordOffsetsSinceCuda11)},
};

// CUDA versions of the cuptiGetVersion values 12 to 28 (cupti_version.h).
struct CuptiVersionName {
  std::uint32_t version;
  int major;
  const char* text;
};
constexpr CuptiVersionName kCuptiVersionNames[] = {
    {12, 10, "CUDA 10"},   {13, 11, "CUDA 11.0"}, {14, 11, "CUDA 11.1"}, {15, 11, "CUDA 11.2"}, {16, 11, "CUDA 11.5"},
    {17, 11, "CUDA 11.6"}, {18, 11, "CUDA 11.8"}, {19, 12, "CUDA 12.0"}, {20, 12, "CUDA 12.2"}, {21, 12, "CUDA 12.3"},
    {22, 12, "CUDA 12.4"}, {23, 12, "CUDA 12.5"}, {24, 12, "CUDA 12.6"}, {25, 12, "CUDA 12.7"}, {26, 12, "CUDA 12.8"},
    {27, 12, "CUDA 12.9"}, {28, 12, "CUDA 12.9"},
};
constexpr std::uint32_t kFirstDecimalVersion =
    10'000;  // from here on the version is 10000 * major + 100 * minor + patch

// CUpti_ActivityMemcpyKind
constexpr std::string_view kCopyDirectionNames[] = {
    "unknown direction", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};

template <class Value>
Value read_at_offset(const Record* record, std::uint16_t offset) {
  Value value;  // records are packed, members may be unaligned
  std::memcpy(&value, reinterpret_cast<const char*>(record) + offset, sizeof value);
  return value;
}

template <class Value>
Value read_at_offset_or_zero(const Record* record, std::uint16_t offset) {
  return offset == kNoOffset ? Value{} : read_at_offset<Value>(record, offset);
}

std::string_view kernel_or_copy_name(const RecordOffsets& members, const Record* record) {
  if (members.copy_kind != kNoOffset) {
    const auto direction = read_at_offset<std::uint8_t>(record, members.copy_kind);
    return kCopyDirectionNames[direction < std::size(kCopyDirectionNames) ? direction : 0];
  }
  if (members.kind == KernelKind::fill) return "fill";
  if (members.kind == KernelKind::graph) return "graph";
  const auto* name = read_at_offset_or_zero<const char*>(record, members.name);
  return name != nullptr ? std::string_view(name) : std::string_view("unnamed kernel");
}

const RecordOffsets* find_record_offsets(const RecordLayout& layout, RecordKind kind) {
  if (kind == RecordKind::kernel) kind = RecordKind::concurrent_kernel;
  for (std::size_t i = 0; i < layout.kind_count; ++i) {
    if (layout.kind_offsets[i].record_kind == kind) return &layout.kind_offsets[i];
  }
  return nullptr;
}

}  // namespace

std::optional<ChosenRecordLayout> find_record_layout(std::uint32_t version) {
  for (const RecordLayout& layout : kRecordLayouts) {
    if (version >= layout.first_version && version <= layout.last_version) return {{&layout, LayoutMatch::known}};
  }
  if (version < kFirstCuda11Version) return std::nullopt;
  return {{&kRecordLayouts[std::size(kRecordLayouts) - 1], LayoutMatch::newer_than_known}};
}

std::string cupti_version_text(std::uint32_t version) {
  if (version >= kFirstDecimalVersion) {
    return "CUDA " + std::to_string(version / 10'000) + "." + std::to_string(version / 100 % 100);
  }
  for (const CuptiVersionName& version_name : kCuptiVersionNames) {
    if (version_name.version == version) return version_name.text;
  }
  return "CUPTI version " + std::to_string(version);
}

int cuda_major_of_cupti(std::uint32_t version) {
  if (version >= kFirstDecimalVersion) return static_cast<int>(version / 10'000);
  for (const CuptiVersionName& version_name : kCuptiVersionNames) {
    if (version_name.version == version) return version_name.major;
  }
  return 0;
}

DecodeOutcome decode_record(const RecordLayout& layout, const Record* record, KernelActivityRecord& kernel_record) {
  const RecordOffsets* members = find_record_offsets(layout, read_at_offset<RecordKind>(record, 0));
  if (members == nullptr) return DecodeOutcome::unknown;
  const auto start = read_at_offset<std::uint64_t>(record, members->start);
  const auto end = read_at_offset<std::uint64_t>(record, members->end);
  if (start == 0 || end == 0) return DecodeOutcome::incomplete;
  kernel_record = KernelActivityRecord{};
  kernel_record.kind = members->kind;
  kernel_record.name = kernel_or_copy_name(*members, record);
  kernel_record.grid = read_at_offset_or_zero<std::array<std::uint32_t, 3>>(record, members->grid);
  kernel_record.block = read_at_offset_or_zero<std::array<std::uint32_t, 3>>(record, members->block);
  kernel_record.device_ordinal = read_at_offset<std::uint32_t>(record, members->device);
  kernel_record.context = read_at_offset<std::uint32_t>(record, members->context);
  kernel_record.stream = read_at_offset<std::uint32_t>(record, members->stream);
  kernel_record.correlation = read_at_offset<std::uint32_t>(record, members->correlation);
  kernel_record.graph_node = read_at_offset_or_zero<std::uint64_t>(record, members->graph_node);
  kernel_record.bytes = read_at_offset_or_zero<std::uint64_t>(record, members->bytes);
  kernel_record.start_ns = static_cast<std::int64_t>(start);
  kernel_record.end_ns = static_cast<std::int64_t>(end);
  return DecodeOutcome::complete;
}

}  // namespace joulemap::capture::cupti

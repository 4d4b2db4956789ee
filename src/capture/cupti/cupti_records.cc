// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/cupti_records.h"

#include <cstring>
#include <iterator>
#include <string_view>

namespace joulemap::capture::cupti {
namespace {

// Member offsets in bytes of CUpti_ActivityKernel5 to 10, Memcpy3 to 6, Memset2 to 4, MemcpyPtoP2 to 4, GraphTrace and
// GraphTrace2.
constexpr RecordOffsets kSinceCuda11[] = {
    {.record = RecordKind::concurrent_kernel,
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
    {.record = RecordKind::copy,
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
    {.record = RecordKind::fill,
     .kind = KernelKind::fill,
     .start = 16,
     .end = 24,
     .device = 32,
     .context = 36,
     .stream = 40,
     .correlation = 44,
     .graph_node = 64,
     .bytes = 8},
    {.record = RecordKind::peer_copy,
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
    {.record = RecordKind::graph,
     .kind = KernelKind::graph,
     .start = 8,
     .end = 16,
     .device = 24,
     .context = 32,
     .stream = 36,
     .correlation = 4},
};

constexpr std::uint32_t kFirstOfCuda11 = 13;
constexpr std::uint32_t kNewestKnown = 130'099;  // CUDA 13.0 and its updates

constexpr RecordLayout kLayouts[] = {
    {kFirstOfCuda11, kNewestKnown, kSinceCuda11, std::size(kSinceCuda11)},
};

// CUDA versions of the cuptiGetVersion values 12 to 28 (cupti_version.h).
struct NamedVersion {
  std::uint32_t version;
  int major;
  const char* text;
};
constexpr NamedVersion kNamedVersions[] = {
    {12, 10, "CUDA 10"},   {13, 11, "CUDA 11.0"}, {14, 11, "CUDA 11.1"}, {15, 11, "CUDA 11.2"}, {16, 11, "CUDA 11.5"},
    {17, 11, "CUDA 11.6"}, {18, 11, "CUDA 11.8"}, {19, 12, "CUDA 12.0"}, {20, 12, "CUDA 12.2"}, {21, 12, "CUDA 12.3"},
    {22, 12, "CUDA 12.4"}, {23, 12, "CUDA 12.5"}, {24, 12, "CUDA 12.6"}, {25, 12, "CUDA 12.7"}, {26, 12, "CUDA 12.8"},
    {27, 12, "CUDA 12.9"}, {28, 12, "CUDA 12.9"},
};
constexpr std::uint32_t kFirstSpelledOut = 10'000;  // from here on the version is 10000 * major + 100 * minor + patch

// CUpti_ActivityMemcpyKind
constexpr std::string_view kCopyDirections[] = {
    "unknown direction", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};

template <class Value>
Value value_at(const Record* record, std::uint16_t offset) {
  Value value;  // records are packed, members may be unaligned
  std::memcpy(&value, reinterpret_cast<const char*>(record) + offset, sizeof value);
  return value;
}

template <class Value>
Value value_or_zero(const Record* record, std::uint16_t offset) {
  return offset == kNoOffset ? Value{} : value_at<Value>(record, offset);
}

std::string_view name_of(const RecordOffsets& members, const Record* record) {
  if (members.copy_kind != kNoOffset) {
    const auto direction = value_at<std::uint8_t>(record, members.copy_kind);
    return kCopyDirections[direction < std::size(kCopyDirections) ? direction : 0];
  }
  if (members.kind == KernelKind::fill) return "fill";
  if (members.kind == KernelKind::graph) return "graph";
  const auto* name = value_or_zero<const char*>(record, members.name);
  return name != nullptr ? std::string_view(name) : std::string_view("unnamed kernel");
}

const RecordOffsets* members_of(const RecordLayout& layout, RecordKind kind) {
  if (kind == RecordKind::kernel) kind = RecordKind::concurrent_kernel;
  for (std::size_t i = 0; i < layout.count; ++i) {
    if (layout.members[i].record == kind) return &layout.members[i];
  }
  return nullptr;
}

}  // namespace

std::optional<ChosenLayout> layout_of_version(std::uint32_t version) {
  for (const RecordLayout& layout : kLayouts) {
    if (version >= layout.first_version && version <= layout.last_version) return {{&layout, LayoutMatch::known}};
  }
  if (version < kFirstOfCuda11) return std::nullopt;
  return {{&kLayouts[std::size(kLayouts) - 1], LayoutMatch::newer_than_known}};
}

std::string version_text(std::uint32_t version) {
  if (version >= kFirstSpelledOut) {
    return "CUDA " + std::to_string(version / 10'000) + "." + std::to_string(version / 100 % 100);
  }
  for (const NamedVersion& named : kNamedVersions) {
    if (named.version == version) return named.text;
  }
  return "CUPTI version " + std::to_string(version);
}

int cuda_major_of(std::uint32_t version) {
  if (version >= kFirstSpelledOut) return static_cast<int>(version / 10'000);
  for (const NamedVersion& named : kNamedVersions) {
    if (named.version == version) return named.major;
  }
  return 0;
}

DecodeOutcome decode_record(const RecordLayout& layout, const Record* record, KernelFacts& into) {
  const RecordOffsets* members = members_of(layout, value_at<RecordKind>(record, 0));
  if (members == nullptr) return DecodeOutcome::unknown;
  const auto start = value_at<std::uint64_t>(record, members->start);
  const auto end = value_at<std::uint64_t>(record, members->end);
  if (start == 0 || end == 0) return DecodeOutcome::incomplete;
  into = KernelFacts{};
  into.kind = members->kind;
  into.name = name_of(*members, record);
  into.grid = value_or_zero<std::array<std::uint32_t, 3>>(record, members->grid);
  into.block = value_or_zero<std::array<std::uint32_t, 3>>(record, members->block);
  into.ordinal = value_at<std::uint32_t>(record, members->device);
  into.context = value_at<std::uint32_t>(record, members->context);
  into.stream = value_at<std::uint32_t>(record, members->stream);
  into.correlation = value_at<std::uint32_t>(record, members->correlation);
  into.graph_node = value_or_zero<std::uint64_t>(record, members->graph_node);
  into.bytes = value_or_zero<std::uint64_t>(record, members->bytes);
  into.start_ns = static_cast<std::int64_t>(start);
  into.end_ns = static_cast<std::int64_t>(end);
  return DecodeOutcome::facts;
}

}  // namespace joulemap::capture::cupti

// SPDX-License-Identifier: Apache-2.0
//
// Decodes one CUPTI record into the facts of a kernel, a copy or a fill. Pure functions. Tables give the offsets of the
// members by version of the library. Records only grow at their end: from CUDA 11.0 to 13.0 no member in use has moved.
// So there is one layout, and newer versions are assumed to match it.
//
// Times stay in the library's clock (clock_map.h). Names point into memory of the library, which keeps it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "capture/cupti/cupti_abi.h"
#include "capture/kernel_log.h"

namespace joulemap::capture::cupti {

// Offsets of the members of one kind of record, in bytes. kNoOffset: the record lacks the member.
inline constexpr std::uint16_t kNoOffset = 0xffff;
struct RecordOffsets {
  RecordKind record_kind;
  KernelKind kind;
  std::uint16_t start;
  std::uint16_t end;
  std::uint16_t device;
  std::uint16_t context;
  std::uint16_t stream;
  std::uint16_t correlation;
  std::uint16_t graph_node = kNoOffset;
  std::uint16_t bytes = kNoOffset;
  std::uint16_t copy_kind = kNoOffset;
  std::uint16_t grid = kNoOffset;  // three 32-bit numbers
  std::uint16_t block = kNoOffset;
  std::uint16_t name = kNoOffset;
};

// The record layout of a range of CUPTI versions (cuptiGetVersion). Versions are consecutive numbers up to 28 (CUDA
// 12.9); since 13.0 they spell out major, minor and patch (130000).
struct RecordLayout {
  std::uint32_t first_version;
  std::uint32_t last_version;
  const RecordOffsets* kind_offsets;
  std::size_t kind_count;
};

enum class LayoutMatch : std::uint8_t { known, newer_than_known };
struct ChosenRecordLayout {
  const RecordLayout* layout;
  LayoutMatch layout_match;
};
// Returns nullopt for versions before CUDA 11.
std::optional<ChosenRecordLayout> find_record_layout(std::uint32_t version);

// Display text: "CUDA 12.4" for 22.
std::string cupti_version_text(std::uint32_t version);
// The CUDA major version of a CUPTI version; 0 if unknown.
int cuda_major_of_cupti(std::uint32_t version);

enum class DecodeOutcome : std::uint8_t {
  complete,    // `kernel_record` is filled
  unknown,     // a kind that is not in the layout
  incomplete,  // still running at a forced flush: it has no start or end time
};
DecodeOutcome decode_record(const RecordLayout& layout, const Record* record, KernelActivityRecord& kernel_record);

}  // namespace joulemap::capture::cupti

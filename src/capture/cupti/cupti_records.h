// SPDX-License-Identifier: Apache-2.0
//
// From the bytes of one CUPTI record to the facts of a kernel, a copy or a fill. Pure functions. The layout of a record
// belongs to the version of the library that wrote it; where its members lie is a table. Records grow at their end: from
// CUDA 11.0 to 13.0 no member that we read has moved, so there is one layout, and what is newer is taken to be like it.
//
// Times are left in the library's clock (clock_map.h). Names are borrowed from the library, which keeps them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "capture/cupti/cupti_abi.h"
#include "capture/kernel_log.h"

namespace joulemap::capture::cupti {

// Where the members of one kind of record lie, in bytes. kNowhere: it has none.
inline constexpr std::uint16_t kNowhere = 0xffff;
struct RecordMembers {
  RecordKind record;
  KernelKind kind;
  std::uint16_t start;
  std::uint16_t end;
  std::uint16_t device;
  std::uint16_t context;
  std::uint16_t stream;
  std::uint16_t correlation;
  std::uint16_t graph_node = kNowhere;
  std::uint16_t bytes = kNowhere;
  std::uint16_t copy_kind = kNowhere;
  std::uint16_t grid = kNowhere;  // three numbers
  std::uint16_t block = kNowhere;
  std::uint16_t name = kNowhere;
};

// A range of what cuptiGetVersion gives: it counted up to 28 (CUDA 12.9); since 13.0 it is 130000, major, minor and patch.
struct RecordLayout {
  std::uint32_t first_version;
  std::uint32_t last_version;
  const RecordMembers* members;
  std::size_t count;
};

enum class LayoutMatch : std::uint8_t { known, newer_than_known };
struct ChosenLayout {
  const RecordLayout* layout;
  LayoutMatch match;
};
// Nothing for a version before CUDA 11.
std::optional<ChosenLayout> layout_of_version(std::uint32_t version);

// For people: "CUDA 12.4" of 22.
std::string version_text(std::uint32_t version);
// The CUDA major version that a CUPTI version belongs to.
int cuda_major_of(std::uint32_t version);

enum class Decoded : std::uint8_t {
  facts,       // `into` is filled
  unknown,     // a kind that is not in the layout
  incomplete,  // it had not ended when buffers were taken back by force: its times are missing
};
Decoded decode_record(const RecordLayout& layout, const Record* record, KernelFacts& into);

}  // namespace joulemap::capture::cupti

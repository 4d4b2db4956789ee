// SPDX-License-Identifier: Apache-2.0
//
// The tool's side of NVTX 3: each copy of its header in the process offers tables of its functions, and a tool puts its own
// into them. We take push and pop of ranges, with and without a domain, and the registration of strings, because ranges
// may be named by what it returned. Protocol and numbers: nvtx3/nvtxDetail/nvtxTypes.h of NVTX 3.
//
// Any thread. Domains share one stack per thread here: their ranges are expected to nest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace joulemap::capture::nvtx {

using GetExportTable = const void* (*)(std::uint32_t table);

// Who is told. Of the calling thread.
struct RangeHooks {
  void (*push)(std::string_view name) noexcept;
  void (*pop)() noexcept;
};

// Puts our functions into that copy of NVTX. False when it does not speak this protocol.
bool attach(GetExportTable tables, RangeHooks hooks);

// In the child of a fork: another thread may have been registering a name. Those that the parent has registered stay valid.
void forget_names_in_child() noexcept;

// NvtxExportTableCallbacks, table 1
using AnyFunction = void (*)();
struct CallbackTables {
  std::size_t struct_size;
  int (*functions_of)(std::uint32_t module, AnyFunction*** functions, unsigned* count);
};
inline constexpr std::uint32_t kCallbackTables = 1;  // NVTX_ETID_CALLBACKS
inline constexpr std::uint32_t kCore = 1;            // NVTX_CB_MODULE_CORE
inline constexpr std::uint32_t kCore2 = 5;           // NVTX_CB_MODULE_CORE2: with domains

// NvtxCallbackIdCore
inline constexpr unsigned kRangePushEx = 8;
inline constexpr unsigned kRangePushA = 9;
inline constexpr unsigned kRangePushW = 10;
inline constexpr unsigned kRangePop = 11;
// NvtxCallbackIdCore2
inline constexpr unsigned kDomainRangePushEx = 4;
inline constexpr unsigned kDomainRangePop = 5;
inline constexpr unsigned kDomainRegisterStringA = 10;
inline constexpr unsigned kDomainRegisterStringW = 11;
inline constexpr unsigned kDomainCreateA = 12;
inline constexpr unsigned kDomainCreateW = 13;

// nvtxEventAttributes_t, version 2
enum class MessageType : std::int32_t { none = 0, ascii = 1, unicode = 2, registered = 3 };
struct EventAttributes {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  std::uint64_t payload;
  MessageType message_type;
  const void* message;
};
static_assert(sizeof(EventAttributes) == 48);

}  // namespace joulemap::capture::nvtx

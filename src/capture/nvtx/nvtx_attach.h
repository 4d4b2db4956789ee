// SPDX-License-Identifier: Apache-2.0
//
// The tool's side of NVTX 3. Each copy of the NVTX header in the process offers tables of its functions, in which a
// tool installs its own. This tool installs push and pop of ranges, with and without a domain, and string registration,
// because ranges may refer to registered strings. Protocol and numbers: nvtx3/nvtxDetail/nvtxTypes.h of NVTX 3.
//
// Thread-safe. All domains share one stack per thread: their ranges are expected to nest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace joulemap::capture::nvtx {

using GetExportTable = const void* (*)(std::uint32_t table);

// Callbacks for ranges, run on the calling thread.
struct RangeHooks {
  void (*push_range)(std::string_view name) noexcept;
  void (*pop_range)() noexcept;
};

// Installs our functions into that copy of NVTX. Returns false when it does not support this protocol.
bool attach_nvtx_callbacks(GetExportTable tables, RangeHooks hooks);

// Called in the child of a fork: starts a new table of registered names, because a thread of the parent may have held
// its lock. Names that the parent registered stay valid.
void forget_registered_names_in_child() noexcept;

// NvtxExportTableCallbacks, table 1
using UntypedFunction = void (*)();
struct CallbackTables {
  std::size_t struct_size;
  int (*get_functions_of_module)(std::uint32_t module, UntypedFunction*** functions, unsigned* count);
};
inline constexpr std::uint32_t kCallbackTablesExportId = 1;  // NVTX_ETID_CALLBACKS
inline constexpr std::uint32_t kModuleCore = 1;              // NVTX_CB_MODULE_CORE
inline constexpr std::uint32_t kModuleCore2 = 5;             // NVTX_CB_MODULE_CORE2: with domains

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

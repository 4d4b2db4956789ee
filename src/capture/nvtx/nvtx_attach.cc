// SPDX-License-Identifier: Apache-2.0
#include "capture/nvtx/nvtx_attach.h"

#include <atomic>
#include <mutex>
#include <new>
#include <string>
#include <unordered_set>

namespace joulemap::capture::nvtx {
namespace {

constexpr std::string_view kUnnamedRange = "(unnamed)";
constexpr int kNoRangeDepth = -2;  // NVTX_NO_PUSH_POP_TRACKING, NVTX's own result without a tool

// Global state: NVTX's functions carry no user pointer.
constinit std::atomic<void (*)(std::string_view) noexcept> push_hook{nullptr};
constinit std::atomic<void (*)() noexcept> pop_hook{nullptr};

// Open ranges of this thread that were pushed here. A pop beyond them ends a range that began before we attached.
thread_local int open_range_count = 0;

constinit char placeholder_domain = 0;  // its address is the handle of every domain

// On Linux a wchar_t is a Unicode code point; invalid ones become U+FFFD.
std::string to_utf8(const wchar_t* text) {
  std::string utf8;
  for (; *text != 0; ++text) {
    auto point = static_cast<char32_t>(*text);
    if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) point = 0xfffd;
    const auto append_continuation_byte = [&](int shift) {
      utf8 += static_cast<char>(0x80 | ((point >> shift) & 0x3f));
    };
    if (point < 0x80) {
      utf8 += static_cast<char>(point);
    } else if (point < 0x800) {
      utf8 += static_cast<char>(0xc0 | (point >> 6));
      append_continuation_byte(0);
    } else if (point < 0x10000) {
      utf8 += static_cast<char>(0xe0 | (point >> 12));
      append_continuation_byte(6);
      append_continuation_byte(0);
    } else {
      utf8 += static_cast<char>(0xf0 | (point >> 18));
      append_continuation_byte(12);
      append_continuation_byte(6);
      append_continuation_byte(0);
    }
  }
  return utf8;
}

int push_range(std::string_view name) noexcept {
  push_hook.load()(name.empty() ? kUnnamedRange : name);
  return open_range_count++;
}

int pop_range() noexcept {
  if (open_range_count == 0) return kNoRangeDepth;
  pop_hook.load()();
  return --open_range_count;
}

int push_ascii_range(const char* name) noexcept {
  return push_range(name != nullptr ? std::string_view(name) : kUnnamedRange);
}

int push_wide_range(const wchar_t* name) noexcept {
  if (name == nullptr) return push_range(kUnnamedRange);
  try {
    return push_range(to_utf8(name));
  } catch (const std::bad_alloc&) {
    return push_range(kUnnamedRange);  // the program pops this range in any case
  }
}

// Registered strings, never freed: the program may use them at any time. Not a function-local static: in a child forked
// during its initialization, the guard would stay locked forever.
constinit std::mutex registered_names_lock;
constinit std::unordered_set<std::string>* registered_names = nullptr;

const std::string* store_registered_name(std::string text) {
  const std::lock_guard hold(registered_names_lock);
  if (registered_names == nullptr) registered_names = new std::unordered_set<std::string>;
  return &*registered_names->insert(std::move(text)).first;
}

const void* register_ascii_string(void* /*domain*/, const char* text) noexcept {
  try {
    return text != nullptr ? store_registered_name(text) : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;  // ranges with this registered name stay unnamed
  }
}

const void* register_wide_string(void* /*domain*/, const wchar_t* text) noexcept {
  try {
    return text != nullptr ? store_registered_name(to_utf8(text)) : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

int push_range_with_attributes(const EventAttributes* attributes) noexcept {
  if (attributes == nullptr || attributes->size < sizeof(EventAttributes) || attributes->message == nullptr) {
    return push_range(kUnnamedRange);
  }
  switch (attributes->message_type) {
    case MessageType::ascii:
      return push_ascii_range(static_cast<const char*>(attributes->message));
    case MessageType::unicode:
      return push_wide_range(static_cast<const wchar_t*>(attributes->message));
    case MessageType::registered:
      return push_range(*static_cast<const std::string*>(attributes->message));
    case MessageType::none:
      break;
  }
  return push_range(kUnnamedRange);
}

// Ranges of all domains nest on their thread. The handle is not null, because libraries (XLA) push no ranges into a
// null domain.
void* create_domain_ascii(const char* /*name*/) noexcept { return &placeholder_domain; }
void* create_domain_wide(const wchar_t* /*name*/) noexcept { return &placeholder_domain; }

int push_domain_range(void* /*domain*/, const EventAttributes* attributes) noexcept {
  return push_range_with_attributes(attributes);
}

int pop_domain_range(void* /*domain*/) noexcept { return pop_range(); }

class NvtxFunctionTable {
 public:
  NvtxFunctionTable(const CallbackTables& tables, std::uint32_t module) {
    if (tables.get_functions_of_module(module, &functions_, &function_count_) == 0) function_count_ = 0;
  }
  bool empty() const { return function_count_ == 0 || functions_ == nullptr; }
  template <class Function>
  void set_function(unsigned id, Function function) {
    if (id < function_count_ && functions_[id] != nullptr)
      *functions_[id] = reinterpret_cast<UntypedFunction>(function);
  }

 private:
  UntypedFunction** functions_ = nullptr;
  unsigned function_count_ = 0;
};

}  // namespace

void forget_registered_names_in_child() noexcept {
  new (&registered_names_lock) std::mutex;
  registered_names = nullptr;
}

bool attach_nvtx_callbacks(GetExportTable tables, RangeHooks hooks) {
  if (tables == nullptr) return false;
  const auto* callbacks = static_cast<const CallbackTables*>(tables(kCallbackTablesExportId));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(CallbackTables)) return false;
  NvtxFunctionTable core(*callbacks, kModuleCore);
  NvtxFunctionTable core2(*callbacks, kModuleCore2);
  if (core.empty()) return false;
  push_hook.store(hooks.push_range);
  pop_hook.store(hooks.pop_range);
  core.set_function(kRangePushEx, &push_range_with_attributes);
  core.set_function(kRangePushA, &push_ascii_range);
  core.set_function(kRangePushW, &push_wide_range);
  core.set_function(kRangePop, &pop_range);
  if (core2.empty()) return true;
  core2.set_function(kDomainRangePushEx, &push_domain_range);
  core2.set_function(kDomainRangePop, &pop_domain_range);
  core2.set_function(kDomainCreateA, &create_domain_ascii);
  core2.set_function(kDomainCreateW, &create_domain_wide);
  core2.set_function(kDomainRegisterStringA, &register_ascii_string);
  core2.set_function(kDomainRegisterStringW, &register_wide_string);
  return true;
}

}  // namespace joulemap::capture::nvtx

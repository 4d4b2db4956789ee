// SPDX-License-Identifier: Apache-2.0
//
// The parts of FakeGpu for CUPTI's enable functions and for interference: other profilers, and clocks that jump.
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "fake_cupti/fake_gpu.h"

namespace joulemap::fake_cupti {
namespace {

constexpr std::size_t kForeignBufferBytes = 64UL * 1024;

// The buffers of the other profiler, which keeps them until the process ends. Used under the lock of the FakeGpu.
std::vector<std::unique_ptr<std::uint8_t[]>>& foreign_buffers() {
  static std::vector<std::unique_ptr<std::uint8_t[]>> buffers;
  return buffers;
}

void on_foreign_buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  *buffer = foreign_buffers().emplace_back(std::make_unique<std::uint8_t[]>(kForeignBufferBytes)).get();
  *size = kForeignBufferBytes;
  *max_records = 0;
}

// The buffer may belong to another tool, so it is not touched.
void on_foreign_buffer_completed(Context, std::uint32_t, std::uint8_t*, std::size_t, std::size_t) {}

// Ticks instead of nanoseconds, as in Kineto.
std::uint64_t foreign_clock_ticks() { return static_cast<std::uint64_t>(monotonic_ns()) * 3; }

}  // namespace

std::uint32_t FakeGpu::version() {
  const std::lock_guard hold(lock_);
  return version_;
}

CuptiResult FakeGpu::subscribe(Subscriber* subscriber, Callback callback, void* user) {
  const std::lock_guard hold(lock_);
  if (subscribed_ || other_subscriber_) return CuptiResult::multiple_subscribers;
  subscribed_ = true;
  callback_ = callback;
  callback_user_data_ = user;
  enabled_callbacks_.clear();
  *subscriber = reinterpret_cast<Subscriber>(++subscription_);
  return CuptiResult::success;
}

CuptiResult FakeGpu::unsubscribe(Subscriber subscriber) {
  const std::lock_guard hold(lock_);
  if (!subscribed_ || reinterpret_cast<std::uintptr_t>(subscriber) != subscription_)
    return CuptiResult::invalid_parameter;
  subscribed_ = false;
  return CuptiResult::success;
}

CuptiResult FakeGpu::enable_callback(bool is_enabled, Subscriber subscriber, CallbackDomain domain, std::uint32_t id) {
  const std::lock_guard hold(lock_);
  if (!subscribed_ || reinterpret_cast<std::uintptr_t>(subscriber) != subscription_)
    return CuptiResult::invalid_parameter;
  if (is_enabled) {
    enabled_callbacks_.insert({domain, id});
  } else {
    enabled_callbacks_.erase({domain, id});
  }
  return CuptiResult::success;
}

void FakeGpu::register_buffers(BufferRequested requested, BufferCompleted completed) {
  const std::lock_guard hold(lock_);
  buffer_requested_ = requested;
  buffer_completed_ = completed;
}

void FakeGpu::register_clock(TimestampFunction clock) {
  const std::lock_guard hold(lock_);
  clock_ = clock;
}

void FakeGpu::set_kind(RecordKind kind, bool is_enabled) {
  const std::lock_guard hold(lock_);
  if (is_enabled) {
    enabled_kinds_.insert(kind);
  } else {
    enabled_kinds_.erase(kind);
  }
}

std::size_t FakeGpu::take_dropped_count() {
  const std::lock_guard hold(lock_);
  return std::exchange(dropped_records_, 0);
}

void FakeGpu::set_records_held(bool is_enabled) {
  const std::lock_guard hold(lock_);
  are_records_held_ = is_enabled;
}

void FakeGpu::release_records(bool is_reversed) {
  const std::lock_guard hold(lock_);
  const std::vector<PendingRecord> held_records = std::exchange(held_records_, {});
  for (std::size_t i = 0; i < held_records.size(); ++i)
    put(held_records[is_reversed ? held_records.size() - 1 - i : i]);
}

void FakeGpu::set_other_subscriber(bool is_present) {
  const std::lock_guard hold(lock_);
  other_subscriber_ = is_present;
}

void FakeGpu::attach_other_profiler(bool sets_clock) {
  const std::lock_guard hold(lock_);
  register_buffers(on_foreign_buffer_requested, on_foreign_buffer_completed);
  if (sets_clock) clock_ = foreign_clock_ticks;
  enabled_kinds_.insert(RecordKind::concurrent_kernel);
}

void FakeGpu::detach_other_profiler() {
  const std::lock_guard hold(lock_);
  deliver_buffers(true, true);
  for (const RecordKind kind : {RecordKind::concurrent_kernel, RecordKind::copy, RecordKind::fill})
    enabled_kinds_.erase(kind);
}

void FakeGpu::return_foreign_buffer() {
  const std::lock_guard hold(lock_);
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0;
  std::size_t max_records = 0;
  on_foreign_buffer_requested(&buffer, &size, &max_records);
  if (buffer_completed_ != nullptr) buffer_completed_(nullptr, 0, buffer, size, 216);
}

void FakeGpu::finalize() {
  const std::lock_guard hold(lock_);
  deliver_buffers(true, true);
  subscribed_ = false;
  enabled_callbacks_.clear();
  enabled_kinds_.clear();
  buffer_requested_ = nullptr;
  buffer_completed_ = nullptr;
  clock_ = nullptr;
}

void FakeGpu::jump_clock(std::int64_t offset_ns) {
  const std::lock_guard hold(lock_);
  clock_offset_ns_ += offset_ns;
}

void FakeGpu::set_times_damaged(bool is_enabled) {
  const std::lock_guard hold(lock_);
  are_times_damaged_ = is_enabled;
}

void FakeGpu::set_flush_hang(bool is_enabled) {
  const std::lock_guard hold(hang_lock_);
  is_flush_hanging_ = is_enabled;
  hang_end_condition_.notify_all();
}

bool FakeGpu::is_subscribed() {
  const std::lock_guard hold(lock_);
  return subscribed_;
}

bool FakeGpu::is_kind_enabled(std::uint32_t kind) {
  const std::lock_guard hold(lock_);
  return enabled_kinds_.count(static_cast<RecordKind>(kind)) != 0;
}

}  // namespace joulemap::fake_cupti

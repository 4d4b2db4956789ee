// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/record_intake.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace joulemap::capture::cupti {
namespace {

constexpr std::int64_t kMaxLoanTime_ns = 30 * kNanosecondsPerSecond;
constexpr std::size_t kMaxRecordBytes = 256;  // a kernel has 216 in CUDA 13.0; buffers with less room are full

}  // namespace

RecordIntake::RecordIntake(const CuptiApi& api, KernelSink& sink, std::int64_t earliest_ns)
    : api_(api), sink_(sink), clock_map_(earliest_ns) {}

void RecordIntake::add_clock_pair(std::int64_t record_ns, std::int64_t monotonic_ns) {
  const std::lock_guard hold(lock_);
  clock_map_.add_clock_pair(record_ns, monotonic_ns);
}

RecordIntake::RecordCounts RecordIntake::record_counts() const {
  const std::lock_guard hold(lock_);
  return counts_;
}

void RecordIntake::on_buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) noexcept {
  const BufferPool::BufferLoan loan{monotonic_ns(), buffer_size_policy_.next_buffer_bytes()};
  *buffer = is_accepting_records_.load() ? buffer_pool_.lend_buffer(loan) : nullptr;
  *size = *buffer != nullptr ? loan.bytes : 0;
  *max_records = 0;  // 0: as many as fit
}

std::uint64_t RecordIntake::lent_record_capacity() const {
  return (buffer_pool_.lent_buffers().bytes + kMaxBufferBytes) /
         kMinRecordBytes;  // plus one buffer that may be requested now
}

std::int64_t RecordIntake::kernels_delivered_until_ns(std::int64_t now_ns) const {
  return std::max(buffer_pool_.lent_buffers().oldest_ns.value_or(now_ns), now_ns - kMaxLoanTime_ns);
}

void RecordIntake::on_buffer_completed(Context context, std::uint32_t stream, std::uint8_t* buffer,
                                       std::size_t valid_bytes) noexcept {
  if (buffer == nullptr) return;
  const std::lock_guard hold(lock_);
  const std::optional<BufferPool::BufferLoan> loan = buffer_pool_.find_loan(buffer);
  // After another profiler used CUPTI, its buffers may arrive here; it may have freed them already.
  if (!loan) {
    ++counts_.foreign_buffers;
    return;
  }
  if (valid_bytes + kMaxRecordBytes > loan->bytes)
    buffer_size_policy_.adapt_to_fill_time(monotonic_ns() - loan->lent_since_ns);
  if (is_accepting_records_.load()) {
    const std::int64_t now_ns = monotonic_ns();
    Record* record = nullptr;
    CuptiResult outcome = CuptiResult::max_limit_reached;
    while (valid_bytes > 0) {
      outcome = api_.functions().get_next_record(buffer, valid_bytes, &record);
      if (outcome != CuptiResult::success) break;
      try {
        process_record(record, now_ns);
      } catch (const std::bad_alloc&) {
        ++counts_.dropped_records;
      }
    }
    if (outcome != CuptiResult::max_limit_reached) ++counts_.broken_buffers;
    std::size_t dropped_record_count = 0;
    if (api_.functions().get_dropped_records != nullptr &&
        api_.functions().get_dropped_records(context, stream, &dropped_record_count) == CuptiResult::success) {
      counts_.dropped_records += dropped_record_count;
    }
  }
  buffer_pool_.return_buffer(buffer);
}

void RecordIntake::process_record(const Record* record, std::int64_t now_ns) {
  KernelActivityRecord kernel_record;
  switch (decode_record(api_.record_layout(), record, kernel_record)) {
    case DecodeOutcome::unknown:
      ++counts_.unknown_kinds;
      return;
    case DecodeOutcome::incomplete:
      ++counts_.incomplete_records;
      return;
    case DecodeOutcome::complete:
      break;
  }
  const std::optional<std::int64_t> start_ns = clock_map_.to_monotonic_ns(kernel_record.start_ns, now_ns);
  const std::optional<std::int64_t> end_ns = clock_map_.to_monotonic_ns(kernel_record.end_ns, now_ns);
  if (!start_ns || !end_ns || *end_ns < *start_ns) {
    ++counts_.foreign_clock_records;
    return;
  }
  const std::int64_t disabled_since_ns = records_disabled_since_ns_.load();
  if (kernel_record.graph_node != 0 && *start_ns<disabled_since_ns&& * end_ns> disabled_since_ns) {
    ++counts_.incomplete_records;
    return;
  }
  kernel_record.start_ns = *start_ns;
  kernel_record.end_ns = *end_ns;
  register_device(kernel_record.device_ordinal);
  sink_.on_kernel(kernel_record);
  ++counts_.forwarded_records;
}

void RecordIntake::register_device(std::uint32_t ordinal) {
  constexpr std::uint32_t kMaxDevices = 1024;  // a larger ordinal is a damaged record
  if (ordinal >= kMaxDevices) return;
  if (ordinal >= registered_devices_.size()) registered_devices_.resize(ordinal + 1);
  if (registered_devices_[ordinal]) return;
  registered_devices_[ordinal] = true;
  std::optional<std::string> uuid = api_.device_uuid(ordinal);
  if (uuid) sink_.set_device(ordinal, *std::move(uuid));
}

}  // namespace joulemap::capture::cupti

// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/record_intake.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace joulemap::capture::cupti {
namespace {

constexpr std::int64_t kMaxLoanNs = 30 * kNanosecondsPerSecond;
constexpr std::size_t kMaxRecordBytes = 256;  // a kernel has 216 in CUDA 13.0; buffers with less room are full

}  // namespace

RecordIntake::RecordIntake(const CuptiApi& api, KernelSink& sink, std::int64_t earliest_ns)
    : api_(api), sink_(sink), clock_(earliest_ns) {}

void RecordIntake::add_clock_pair(std::int64_t record_ns, std::int64_t monotonic_ns) {
  const std::lock_guard hold(lock_);
  clock_.add_clock_pair(record_ns, monotonic_ns);
}

RecordIntake::Counts RecordIntake::counts() const {
  const std::lock_guard hold(lock_);
  return counts_;
}

void RecordIntake::on_buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) noexcept {
  const BufferPool::Loan loan{monotonic_ns(), sizing_.next_buffer_bytes()};
  *buffer = is_open_.load() ? pool_.take(loan) : nullptr;
  *size = *buffer != nullptr ? loan.bytes : 0;
  *max_records = 0;  // 0: as many as fit
}

std::uint64_t RecordIntake::lent_capacity() const {
  return (pool_.lent_buffers().bytes + kMaxBufferBytes) / kMinRecordBytes;  // plus one buffer that may be requested now
}

std::int64_t RecordIntake::delivered_until_ns(std::int64_t now_ns) const {
  return std::max(pool_.lent_buffers().oldest_ns.value_or(now_ns), now_ns - kMaxLoanNs);
}

void RecordIntake::on_buffer_completed(Context context, std::uint32_t stream, std::uint8_t* buffer,
                                       std::size_t valid_bytes) noexcept {
  if (buffer == nullptr) return;
  const std::lock_guard hold(lock_);
  const std::optional<BufferPool::Loan> loan = pool_.loan_of(buffer);
  // After another profiler used CUPTI, its buffers may arrive here; it may have freed them already.
  if (!loan) {
    ++counts_.foreign_buffers;
    return;
  }
  if (valid_bytes + kMaxRecordBytes > loan->bytes) sizing_.on_full(monotonic_ns() - loan->since_ns);
  if (is_open_.load()) {
    const std::int64_t now_ns = monotonic_ns();
    Record* record = nullptr;
    CuptiResult outcome = CuptiResult::max_limit_reached;
    while (valid_bytes > 0) {
      outcome = api_.functions().next_record(buffer, valid_bytes, &record);
      if (outcome != CuptiResult::success) break;
      try {
        process_record(record, now_ns);
      } catch (const std::bad_alloc&) {
        ++counts_.dropped;
      }
    }
    if (outcome != CuptiResult::max_limit_reached) ++counts_.broken_buffers;
    std::size_t dropped = 0;
    if (api_.functions().dropped_records != nullptr &&
        api_.functions().dropped_records(context, stream, &dropped) == CuptiResult::success) {
      counts_.dropped += dropped;
    }
  }
  pool_.give_back(buffer);
}

void RecordIntake::process_record(const Record* record, std::int64_t now_ns) {
  KernelFacts facts;
  switch (decode_record(api_.layout(), record, facts)) {
    case DecodeOutcome::unknown:
      ++counts_.unknown;
      return;
    case DecodeOutcome::incomplete:
      ++counts_.incomplete;
      return;
    case DecodeOutcome::facts:
      break;
  }
  const std::optional<std::int64_t> start_ns = clock_.to_monotonic(facts.start_ns, now_ns);
  const std::optional<std::int64_t> end_ns = clock_.to_monotonic(facts.end_ns, now_ns);
  if (!start_ns || !end_ns || *end_ns < *start_ns) {
    ++counts_.foreign_clock;
    return;
  }
  const std::int64_t silent_since_ns = disabled_since_ns_.load();
  if (facts.graph_node != 0 && *start_ns<silent_since_ns&& * end_ns> silent_since_ns) {
    ++counts_.incomplete;
    return;
  }
  facts.start_ns = *start_ns;
  facts.end_ns = *end_ns;
  register_device(facts.ordinal);
  sink_.on_kernel(facts);
  ++counts_.records;
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

// SPDX-License-Identifier: Apache-2.0
//
// RecordIntake: lends buffers to CUPTI, decodes the records of returned buffers, converts their times to
// CLOCK_MONOTONIC and passes them to the sink. Its two callbacks run on CUPTI's thread or on a flushing thread, never
// for two buffers at once. Nothing here may throw into CUPTI.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "capture/cupti/buffer_pool.h"
#include "capture/cupti/clock_map.h"
#include "capture/cupti/cupti_api.h"
#include "capture/cupti/kernel_sink.h"

namespace joulemap::capture::cupti {

class RecordIntake {
 public:
  // The arguments outlive the intake. Records before earliest_ns are rejected.
  RecordIntake(const CuptiApi& api, KernelSink& sink, std::int64_t earliest_ns);

  void on_buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) noexcept;
  void on_buffer_completed(Context context, std::uint32_t stream, std::uint8_t* buffer,
                           std::size_t valid_bytes) noexcept;

  // Adds a pair of simultaneous readings of CUPTI's clock and ours.
  void add_clock_pair(std::int64_t record_ns, std::int64_t monotonic_ns);

  // Stops lending buffers and passing records on.
  void stop_accepting_records() { is_accepting_records_.store(false); }

  struct RecordCounts {
    std::uint64_t forwarded_records = 0;      // passed on
    std::uint64_t unknown_kinds = 0;          // of kinds that are not decoded
    std::uint64_t incomplete_records = 0;     // still running at a forced flush, or when records were disabled
    std::uint64_t foreign_clock_records = 0;  // with times of an unknown clock
    std::uint64_t foreign_buffers = 0;        // buffers of another profiler; not touched
    std::uint64_t broken_buffers = 0;         // buffers that CUPTI failed to read to their end
    std::uint64_t dropped_records = 0;        // by CUPTI for lack of a buffer, or by us for lack of memory
  };
  RecordCounts record_counts() const;

  // Upper bound of the records that CUPTI holds and has not delivered.
  std::uint64_t lent_record_capacity() const;
  // All kernels launched before this time were delivered: when CUPTI got the oldest buffer that it still holds, now_ns
  // if it holds none. At least now_ns - 30 s: a buffer held for longer is empty or lost.
  std::int64_t kernels_delivered_until_ns(std::int64_t now_ns) const;
  bool has_lent_buffers() const { return buffer_pool_.lent_buffers().bytes > 0; }
  // Records were disabled at since_ns. For a kernel of a CUDA graph that was running then, CUPTI reports a false end: a
  // later launch of the graph. Such records are left out.
  void set_records_disabled_since(std::int64_t since_ns) { records_disabled_since_ns_.store(since_ns); }
  // The lent buffers may never come back: another profiler got them, or CUPTI was closed.
  void abandon_lent_buffers() { buffer_pool_.abandon_lent_buffers(); }

 private:
  void process_record(const Record* record, std::int64_t now_ns);
  void register_device(std::uint32_t ordinal);

  const CuptiApi& api_;
  KernelSink& sink_;
  BufferPool buffer_pool_;
  BufferSizePolicy buffer_size_policy_;
  std::atomic<bool> is_accepting_records_{true};
  std::atomic<std::int64_t> records_disabled_since_ns_{INT64_MAX};

  mutable std::mutex lock_;
  ClockMap clock_map_;
  RecordCounts counts_;
  std::vector<bool> registered_devices_;  // by device ordinal
};

}  // namespace joulemap::capture::cupti

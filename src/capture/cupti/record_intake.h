// SPDX-License-Identifier: Apache-2.0
//
// RecordIntake: lends buffers to CUPTI, reads the records in those that come back, puts their times on CLOCK_MONOTONIC and
// passes them on. Its two callbacks run on CUPTI's thread, or on one that flushes; never two buffers at once. Nothing in
// here may throw into CUPTI.
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
  // Both outlive it. Nothing was recorded before earliest_ns.
  RecordIntake(const CuptiApi& api, KernelSink& sink, std::int64_t earliest_ns);

  void on_buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) noexcept;
  void on_buffer_completed(Context context, std::uint32_t stream, std::uint8_t* buffer,
                           std::size_t valid_bytes) noexcept;

  // A moment seen on CUPTI's clock and on ours.
  void add_moment(std::int64_t record_ns, std::int64_t monotonic_ns);

  // No more is lent or passed on.
  void close() { open_.store(false); }

  struct Counts {
    std::uint64_t records = 0;          // passed on
    std::uint64_t unknown = 0;          // of kinds that we do not read
    std::uint64_t incomplete = 0;       // still running when buffers were taken back by force
    std::uint64_t foreign_clock = 0;    // with times of a clock that is not known
    std::uint64_t foreign_buffers = 0;  // lent by somebody else, and left alone
    std::uint64_t broken_buffers = 0;   // which CUPTI could not read to their end
    std::uint64_t dropped = 0;          // by CUPTI, for want of a buffer, or by us, of memory
  };
  Counts counts() const;

  // How many records CUPTI may have that we have not seen.
  std::uint64_t room_lent() const;
  // What was launched before this and has ended has been told. (A buffer that is out for long is empty, or lost.)
  std::int64_t told_until_ns(std::int64_t now_ns) const;
  bool has_lent() const { return pool_.lent().bytes > 0; }
  // Records were switched off then. A kernel of a graph that still ran is told to have ended when the graph was last
  // launched again: it is left out.
  void note_silence(std::int64_t since_ns) { silent_since_ns_.store(since_ns); }
  // Buffers that are out will not come back: somebody else got them.
  void write_off_buffers() { pool_.write_off(); }

 private:
  void take_record(const Record* record, std::int64_t now_ns);
  void introduce_device(std::uint32_t ordinal);

  const CuptiApi& api_;
  KernelSink& sink_;
  BufferPool pool_;
  BufferSizing sizing_;
  std::atomic<bool> open_{true};
  std::atomic<std::int64_t> silent_since_ns_{INT64_MAX};

  mutable std::mutex lock_;
  ClockMap clock_;
  Counts counts_;
  std::vector<bool> introduced_;  // by ordinal
};

}  // namespace joulemap::capture::cupti

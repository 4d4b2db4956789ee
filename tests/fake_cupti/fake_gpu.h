// SPDX-License-Identifier: Apache-2.0
//
// FakeGpu: the state behind the fake libcupti. Launches become records in the buffers of the registered tool, as in the
// real library: a buffer is returned when it is full or flushed and none of its kernels still runs.
//
// Thread-safe. Buffer callbacks run under the lock (the real library has one thread for them), API callbacks outside of
// it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capture/cupti/cupti_abi.h"
#include "fake_cupti/fake_cupti.h"

namespace joulemap::fake_cupti {

using namespace joulemap::capture::cupti;

class FakeGpu {
 public:
  void reset(std::uint32_t version);

  // Controls of the program and of faults: see fake_cupti.h.
  std::uint32_t launch(const Launch& launch);
  std::uint32_t launch_graph();
  void end_running_records();
  std::uint64_t capture_graph_node();
  std::uint64_t clone_graph_node(std::uint64_t original_node);
  void set_records_held(bool is_enabled);
  void release_records(bool is_reversed);
  void add_unknown_record();
  void set_other_subscriber(bool is_present);
  void attach_other_profiler(bool sets_clock);
  void detach_other_profiler();
  void return_foreign_buffer();
  void finalize();
  void jump_clock(std::int64_t offset_ns);
  void set_function_result(const char* function, int outcome);
  void set_flush_hang(bool is_enabled);
  void set_times_damaged(bool is_enabled);
  bool is_subscribed();
  bool is_kind_enabled(std::uint32_t kind);
  bool is_callback_enabled(const char* driver_function);
  std::uint64_t call_count() const { return call_count_.load(); }

  // CUPTI's functions. begin_call() counts the call and returns the outcome that the test has set.
  CuptiResult begin_call(const char* function);
  std::uint32_t version();
  CuptiResult subscribe(Subscriber* subscriber, Callback callback, void* user);
  CuptiResult unsubscribe(Subscriber subscriber);
  CuptiResult enable_callback(bool is_enabled, Subscriber subscriber, CallbackDomain domain, std::uint32_t id);
  static CuptiResult callback_name(std::uint32_t id, const char** name);
  void register_buffers(BufferRequested requested, BufferCompleted completed);
  void register_clock(TimestampFunction clock);
  void set_kind(RecordKind kind, bool is_enabled);
  void flush(bool is_forced);
  CuptiResult next_record(std::uint8_t* buffer, std::size_t valid_size, Record** record);
  std::size_t take_dropped_count();
  std::uint64_t now();

 private:
  struct Buffer {
    std::uint8_t* memory;
    std::size_t size;
    std::size_t used;
    bool holds(const std::uint8_t* record) const;
  };
  struct PendingRecord {
    std::vector<std::uint8_t> bytes;
    bool running;
  };

  void invoke_callback(CallbackDomain domain, std::uint32_t id, const void* data);
  void report_driver_call(const char* function, std::uint32_t correlation);
  std::vector<std::uint8_t> make_record(const Launch& launch, std::uint32_t correlation);
  std::size_t record_kind(RecordKind kind) const;
  void add(PendingRecord pending);
  void put(const PendingRecord& pending);
  void deliver_buffers(bool includes_open_buffers, bool is_forced);

  std::recursive_mutex lock_;
  std::uint32_t version_ = 130'001;
  Callback callback_ = nullptr;
  void* callback_user_data_ = nullptr;
  std::uintptr_t subscription_ = 0;
  bool subscribed_ = false;
  bool other_subscriber_ = false;
  std::set<std::pair<CallbackDomain, std::uint32_t>> enabled_callbacks_;
  std::set<RecordKind> enabled_kinds_;
  BufferRequested buffer_requested_ = nullptr;
  BufferCompleted buffer_completed_ = nullptr;
  TimestampFunction clock_ = nullptr;
  std::int64_t clock_offset_ns_ = 0;
  bool are_times_damaged_ = false;

  std::vector<Buffer> full_buffers_;
  std::vector<Buffer> open_buffers_;  // at most one
  struct RunningRecord {
    std::uint8_t* record;  // its times are not set yet
    std::uint64_t start;
  };
  std::vector<RunningRecord> running_records_;
  std::vector<PendingRecord> held_records_;
  bool are_records_held_ = false;
  std::size_t dropped_records_ = 0;
  std::map<std::uint8_t*, std::size_t> read_offsets_;  // offset of next_record in each buffer

  std::uint32_t next_correlation_ = 1;
  std::uint64_t next_graph_node_ = 1;
  std::map<std::string, int> refusal_results_;
  std::atomic<std::uint64_t> call_count_{0};

  std::mutex hang_lock_;
  std::condition_variable hang_end_condition_;
  bool is_flush_hanging_ = false;
};

}  // namespace joulemap::fake_cupti

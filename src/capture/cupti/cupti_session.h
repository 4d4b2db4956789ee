// SPDX-License-Identifier: Apache-2.0
//
// CuptiSession: this process's use of CUPTI. It ties every launch to the scope and step of the launching thread and
// passes every record to the sink, in CLOCK_MONOTONIC nanoseconds. CUPTI supports one user of its records: when another
// profiler takes them, the session detects it, reports the lost time and takes them back later.
//
// One session at a time in a process. A started session lives until the process ends, because CUPTI's threads refer to
// it. (Tests destroy theirs when nothing launches any more.) Call start once. The capture's thread calls poll about
// twice a second; any thread may call set_tracing, set_other_profiler_running and finish. Call finish from an atexit
// handler registered after start, so that it runs before CUPTI's own. Errors after start become diagnostics and never
// reach the program.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "capture/cupti/cupti_api.h"
#include "capture/cupti/driver_calls.h"
#include "capture/cupti/kernel_sink.h"
#include "capture/cupti/nested_graphs.h"
#include "capture/cupti/record_intake.h"
#include "capture/cupti/record_loss_detector.h"
#include "capture/cupti/session_report.h"
#include "capture/cupti/timed_mutex.h"
#include "model/diagnostics.h"

namespace joulemap::capture::cupti {

// Scope and step of the calling thread. Called at every launch.
struct LaunchContext {
  std::uint32_t (*current_scope)() noexcept;
  std::uint32_t (*current_step)() noexcept;
};

class CuptiSession {
 public:
  // The sink outlives the session. `finish_timeout`: how long finish waits for CUPTI.
  CuptiSession(CuptiApi api, KernelSink& sink, LaunchContext launch_context,
               std::chrono::milliseconds finish_timeout = std::chrono::seconds(5));
  ~CuptiSession();  // calls finish()
  CuptiSession(const CuptiSession&) = delete;
  CuptiSession& operator=(const CuptiSession&) = delete;

  // Fails when no kernels can be recorded at all. When another profiler is subscribed, kernels are recorded without
  // scopes.
  Status start();

  // Enables or disables records and launch callbacks: light mode traces only a few steps. Enabled after start.
  void set_tracing(bool is_tracing_enabled);
  // Whether CUPTI may be closed while steps stay untraced for long: while open, it slows every launch down by a
  // microsecond. Not allowed where CUDA graphs are created, because their nodes would be missed. Initially not allowed.
  void allow_detach(bool is_detach_allowed);
  bool is_detached() const { return attachment_.load() == Attachment::detached; }
  // Whether launches are recorded now.
  bool is_tracing() const { return is_tracing_.load(std::memory_order_relaxed); }

  void poll(std::int64_t now_ns);

  // Another profiler in this process starts or has stopped. The session releases CUPTI while that profiler runs.
  void set_other_profiler_running(bool is_profiler_running, std::int64_t now_ns);

  // Fetches the remaining records and releases CUPTI. Returns within seconds in any state of the driver. Idempotent.
  void finish();

  // Called in the child of a fork: CUDA does not survive a fork, so CUPTI is not touched any more.
  void abandon_in_child() noexcept;

  // All kernels launched before this time were delivered. It is the time at which CUPTI got the oldest buffer that it
  // still holds, because it holds buffers back while their kernels run; now_ns if it holds none.
  std::int64_t delivered_until_ns(std::int64_t now_ns) const {
    return record_intake_.kernels_delivered_until_ns(now_ns);
  }
  RecordIntake::RecordCounts record_counts() const { return record_intake_.record_counts(); }
  std::uint64_t launch_count() const { return launch_count_.load(std::memory_order_relaxed); }
  Diagnostics diagnostics() const;

 private:
  static void on_callback(void* session, CallbackDomain domain, std::uint32_t id, const void* data);
  void on_graph_change(std::uint32_t id, const GraphChange& change);

  Status acquire_cupti();  // subscribes, sets clock and buffers, enables record kinds
  void subscribe();
  void unsubscribe();
  void register_own_clock();
  Status enable_record_kinds(bool is_enabled);
  void enable_launch_callbacks(bool is_enabled);
  bool is_own_clock_replaced();
  void read_clock_pair();
  void yield_to_profiler();
  void reacquire_cupti(std::int64_t now_ns);
  void add_record_loss(RecordLosses& losses, std::int64_t since_ns, std::int64_t now_ns);
  void report_flush_failure(CuptiResult outcome);
  void add_diagnostic(std::string code, std::string message, std::string remedy = "");
  RecordLossDetector::Snapshot take_loss_snapshot(std::int64_t now_ns);
  bool can_detach_now() const;
  void detach_if_idle(std::int64_t now_ns);
  void detach_in_callback() noexcept;
  Status ensure_attached();

  const CuptiApi api_;
  KernelSink& sink_;
  const LaunchContext launch_context_;
  const std::chrono::milliseconds finish_timeout_;
  RecordIntake record_intake_;
  NestedGraphTracker nested_graphs_;

  std::atomic<bool> is_active_{false};  // started, and neither finished nor abandoned
  std::atomic<bool> is_tracing_{false};
  std::atomic<std::uint64_t> launch_count_{0};
  std::atomic<std::uint64_t> lost_graph_node_count_{0};

  TimedMutex control_lock_;  // held by poll, set_other_profiler_running and finish, also while CUPTI flushes
  RecordLossDetector loss_detector_;
  std::optional<std::int64_t> other_profiler_since_ns_;
  bool uses_own_clock_ = false;   // CUPTI calls our clock for the times of records
  bool can_check_clock_ = false;  // a timestamp query shows whether CUPTI still uses our clock

  TimedMutex enable_lock_;  // guards what is enabled; not held during flushes, because set_tracing waits for it
  Subscriber callback_subscriber_ = nullptr;
  DriverCallbackIds callback_ids_;
  bool is_tracing_requested_ = false;      // last argument of set_tracing
  bool has_yielded_to_profiler_ = false;   // another profiler uses CUPTI
  bool was_shared_with_profiler_ = false;  // another profiler has used CUPTI, so it must not be closed
  std::int64_t untraced_since_ns_ = 0;

  enum class Attachment : std::uint8_t { attached, detaching, detached };
  std::atomic<Attachment> attachment_{Attachment::attached};  // detaching: the next launch closes CUPTI
  std::atomic<bool> is_detach_allowed_{false};
  std::atomic<bool> has_reattached_{false};

  mutable std::mutex diagnostics_lock_;
  Diagnostics diagnostics_;
  RecordLosses unexplained_losses_;
  RecordLosses profiler_losses_;
};

}  // namespace joulemap::capture::cupti

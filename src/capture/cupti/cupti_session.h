// SPDX-License-Identifier: Apache-2.0
//
// CuptiSession: this process's use of CUPTI. Every launch is tied to the place and the step of the thread that made it;
// every record of what ran goes to the sink, in CLOCK_MONOTONIC nanoseconds. CUPTI has room for one user of its records:
// when another profiler takes them, the session notices, says for how long, and takes them back afterwards.
//
// One at a time in a process, and started ones are kept until its end: CUPTI's threads know it. (Tests destroy theirs when
// nothing is launched any more.) Calls: start once; poll by the capture's thread, about once a second; listen and
// someone_profiles by any thread of the program; finish by any, from an atexit handler that was registered after start, so
// that it runs before CUPTI's own. Nothing that goes wrong after start reaches the program: it becomes a diagnostic.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "capture/cupti/cupti_api.h"
#include "capture/cupti/kernel_sink.h"
#include "capture/cupti/launch_calls.h"
#include "capture/cupti/loss_watch.h"
#include "capture/cupti/nested_graphs.h"
#include "capture/cupti/patient_mutex.h"
#include "capture/cupti/record_intake.h"
#include "capture/cupti/session_report.h"
#include "model/diagnostics.h"

namespace joulemap::capture::cupti {

// Where the calling thread is. Called at every launch.
struct Position {
  std::uint32_t (*place)() noexcept;
  std::uint32_t (*step)() noexcept;
};

class CuptiSession {
 public:
  // The sink outlives it. `farewell`: how long finish waits for CUPTI.
  CuptiSession(CuptiApi api, KernelSink& sink, Position position,
               std::chrono::milliseconds farewell = std::chrono::seconds(5));
  ~CuptiSession();  // finishes
  CuptiSession(const CuptiSession&) = delete;
  CuptiSession& operator=(const CuptiSession&) = delete;

  // Fails when no kernels can be recorded at all. Without places (somebody else is subscribed) it goes on.
  Status start();

  // Records and launches on or off: between steps, for programs that wait for their launches. On after start.
  void listen(bool on);
  // Whether CUPTI may be closed while nobody listens for long. Once it was used it costs every launch a microsecond, as
  // long as it is open. Not where CUDA graphs are made: their nodes would not be seen. Not from the beginning.
  void allow_rest(bool allowed);
  bool rests() const { return rest_.load() == Rest::closed; }
  // Whether what is launched now will be told.
  bool hears() const { return hears_.load(std::memory_order_relaxed); }

  void poll(std::int64_t now_ns);

  // Another profiler of this process begins (and gets CUPTI for itself) or has ended.
  void someone_profiles(bool running, std::int64_t now_ns);

  // Fetches what is left and lets go of CUPTI. Returns within seconds, whatever state the driver is in. Again: nothing.
  void finish();

  // In a fork's child: CUDA does not survive a fork, so nothing of CUPTI is touched any more.
  void abandon() noexcept;

  // What was launched before this and has ended has been told: CUPTI holds buffers back while their kernels run.
  std::int64_t told_until_ns(std::int64_t now_ns) const { return intake_.told_until_ns(now_ns); }
  RecordIntake::Counts counts() const { return intake_.counts(); }
  std::uint64_t launches() const { return launches_.load(std::memory_order_relaxed); }
  Diagnostics diagnostics() const;

 private:
  static void on_callback(void* session, Domain domain, std::uint32_t id, const void* data);
  void on_graph(std::uint32_t id, const GraphChange& change);

  Status acquire();  // subscription, clock, buffers, kinds
  void subscribe();
  void unsubscribe();
  void set_clock();
  Status set_kinds(bool on);
  void set_launch_callbacks(bool on);
  bool clock_is_taken();
  void note_moment();
  void lend();
  void recover(std::int64_t now_ns);
  void note_loss(Losses& losses, std::int64_t since_ns, std::int64_t now_ns);
  void note_flush(Outcome outcome);
  void note(std::string code, std::string message, std::string remedy = "");
  LossWatch::Seen seen(std::int64_t now_ns);
  // cupti_rest.cc
  bool may_rest() const;
  void consider_rest(std::int64_t now_ns);
  void close_in_callback() noexcept;
  Status wake();

  const CuptiApi api_;
  KernelSink& sink_;
  const Position position_;
  const std::chrono::milliseconds farewell_;
  RecordIntake intake_;
  NestedGraphs nested_graphs_;

  std::atomic<bool> alive_{false};  // started, and neither finished nor abandoned
  std::atomic<bool> hears_{false};
  std::atomic<std::uint64_t> launches_{0};
  std::atomic<std::uint64_t> unplaced_nodes_{0};

  PatientMutex control_;  // poll, someone_profiles, finish: held while CUPTI flushes
  LossWatch losses_;
  std::optional<std::int64_t> profiled_since_ns_;
  bool own_clock_ = false;  // CUPTI was given our clock
  bool can_probe_ = false;  // and asking CUPTI for the time shows whether it still has it

  PatientMutex switches_;  // what is enabled; never held while CUPTI flushes, because listen waits for it
  Subscriber subscriber_ = nullptr;
  LaunchCallbacks callbacks_;
  bool listening_ = false;  // what listen asked for
  bool lent_ = false;       // another profiler has CUPTI
  bool is_shared_ = false;  // another one has had it: what it left there is not ours to close
  std::int64_t silent_since_ns_ = 0;

  enum class Rest : std::uint8_t { awake, leaving, closed };
  std::atomic<Rest> rest_{Rest::awake};  // leaving: CUPTI is closed as soon as a launch returns
  std::atomic<bool> rest_is_allowed_{false};
  std::atomic<bool> has_woken_{false};

  mutable std::mutex notes_;
  Diagnostics noted_;
  Losses lost_to_silence_;
  Losses lost_to_profiler_;
};

}  // namespace joulemap::capture::cupti

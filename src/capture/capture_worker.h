// SPDX-License-Identifier: Apache-2.0
//
// CaptureWorker: the capture's own thread in the measured process. It runs the periodic work of the capture and writes
// what was captured to the recording about twice a second, so a killed process loses at most the last half second. The
// child of a fork must not touch its parent's worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "capture/mark_log.h"

namespace joulemap::capture {

// Work of the capture that the worker runs on its thread.
class PeriodicWork {
 public:
  virtual ~PeriodicWork() = default;
  // Receives the CPU time the worker has used; returns the delay until the next call, in ns.
  virtual std::int64_t tick(std::int64_t worker_cpu_ns) = 0;
  // Before every write.
  virtual void collect_activity(MarkSink& sink, bool is_last) = 0;
  // Once, at the end.
  virtual void add_diagnostics(Diagnostics& diagnostics) = 0;
};

class CaptureWorker {
 public:
  // Starts the thread. `marks` and `work` outlive the worker; `work` may be null: then only marks are written.
  CaptureWorker(std::unique_ptr<MarkSink> sink, MarkLog& marks, PeriodicWork* work = nullptr);
  ~CaptureWorker();  // calls finish()
  CaptureWorker(const CaptureWorker&) = delete;
  CaptureWorker& operator=(const CaptureWorker&) = delete;

  // Writes what is pending and closes the recording's part; later marks are dropped. The first call does the work,
  // concurrent calls wait.
  void finish();

 private:
  void run();
  void write_pending(bool is_last);

  std::unique_ptr<MarkSink> sink_;  // used by the worker's thread, then by finish()
  MarkLog& marks_;
  PeriodicWork* const work_;
  Diagnostics failures_;  // of the worker's thread

  std::mutex finish_lock_;
  std::atomic<std::uint32_t> stopping_{0};
  std::thread thread_;
};

}  // namespace joulemap::capture

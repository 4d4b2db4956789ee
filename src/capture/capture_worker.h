// SPDX-License-Identifier: Apache-2.0
//
// CaptureWorker: the capture's own thread in the measured process. It runs the periodic work of the capture and writes
// marks and finished steps to the recording about twice a second, and tallies every 1 to 30 s; a killed process loses
// what was not yet written. The child of a fork must not touch its parent's worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "capture/mark_log.h"

namespace joulemap::capture {

// Work of the capture that the worker runs on its own thread, and at the end on the thread that calls finish().
class WorkerCallbacks {
 public:
  virtual ~WorkerCallbacks() = default;
  // Receives the CPU time in ns that the worker's thread has used so far; returns the delay until the next call, in ns.
  virtual std::int64_t run_tick(std::int64_t worker_cpu_ns) = 0;
  // Called before every write to add activity to `sink`; is_last: by finish().
  virtual void collect_activity(CaptureSink& sink, bool is_last) = 0;
  // Called once, by finish().
  virtual void add_diagnostics(Diagnostics& diagnostics) = 0;
};

class CaptureWorker {
 public:
  // Starts the thread. `marks` and `work` outlive the worker; `work` may be null: then only marks are written.
  CaptureWorker(std::unique_ptr<CaptureSink> sink, MarkLog& marks, WorkerCallbacks* work = nullptr);
  ~CaptureWorker();  // calls finish()
  CaptureWorker(const CaptureWorker&) = delete;
  CaptureWorker& operator=(const CaptureWorker&) = delete;

  // Writes what is pending and closes the process's part of the recording; later marks are dropped. The first call does
  // the work; concurrent calls wait for it, later calls do nothing.
  void finish();

 private:
  void run();
  void write_pending_data(bool is_last);

  std::unique_ptr<CaptureSink> capture_sink_;  // used by the worker's thread, then by finish()
  MarkLog& mark_log_;
  WorkerCallbacks* const worker_callbacks_;
  Diagnostics write_errors_;  // of writes; used like capture_sink_

  std::mutex finish_lock_;
  std::atomic<std::uint32_t> stop_requested_{0};
  std::thread thread_;
};

}  // namespace joulemap::capture

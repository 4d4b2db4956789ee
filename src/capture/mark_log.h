// SPDX-License-Identifier: Apache-2.0
//
// MarkLog: buffers what the measured program reports (steps, epochs, regions, windows, metrics) and writes it to the
// recording on its own thread. The reporting functions are thread-safe and hold a lock for some nanoseconds. The log's
// thread writes about twice a second, so a killed process loses at most the last half second. The child of a fork must
// not touch its parent's log.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "model/activity.h"
#include "model/recorded.h"

namespace joulemap::capture {

// Destination of all data: a recording, or a test. Called by one thread at a time.
class MarkSink {
 public:
  virtual ~MarkSink() = default;
  virtual void add(Mark mark) = 0;
  virtual void add(Metric metric) = 0;
  virtual void add(EnvironmentFact fact) = 0;
  virtual void add(Activity activity) = 0;
  virtual Status flush() = 0;
  virtual Status finish(Diagnostics diagnostics) = 0;
};

// Callbacks that the log's thread runs besides writing.
struct LogCallbacks {
  // Receives the CPU time this thread has used; returns the delay until the next call, in ns.
  std::function<std::int64_t(std::int64_t own_cpu_ns)> tick;
  std::function<void(MarkSink&, bool is_last)> collect_activity;            // before every write
  std::function<void(Diagnostics&)> add_diagnostics = [](Diagnostics&) {};  // at the end
};

class MarkLog {
 public:
  explicit MarkLog(std::unique_ptr<MarkSink> sink, LogCallbacks callbacks = {});
  ~MarkLog();  // calls finish()
  MarkLog(const MarkLog&) = delete;
  MarkLog& operator=(const MarkLog&) = delete;

  void mark(MarkKind kind, std::uint64_t id, std::string_view name);
  // The same for an event at an earlier time.
  void mark_at(std::int64_t time_ns, MarkKind kind, std::uint64_t id, std::string_view name);

  // Records and returns `number`, or the last number plus one; the first is 0.
  std::int64_t step(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name = {});
  std::int64_t epoch(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name = {});
  void metric(std::string_view name, double value, std::int64_t time_ns);
  void fact(EnvironmentFact fact);
  void add_diagnostic(Diagnostic diagnostic);

  // Writes what is pending and closes the recording's part; later marks are dropped. The first call does the work,
  // concurrent calls wait.
  void finish();

 private:
  struct Batch {
    std::vector<Mark> marks;
    std::vector<Metric> metrics;
    std::vector<EnvironmentFact> facts;
  };

  std::int64_t add_numbered_mark(MarkKind kind, std::optional<std::int64_t>& last, std::optional<std::int64_t> number,
                                 std::int64_t time_ns, std::string_view name);
  void add(Mark mark);
  void run();
  void write_pending(bool is_last);

  std::unique_ptr<MarkSink> sink_;  // used by the log's thread, then by finish()
  LogCallbacks callbacks_;

  std::mutex lock_;
  Batch pending_;
  std::optional<std::int64_t> last_step_;
  std::optional<std::int64_t> last_epoch_;
  std::uint64_t dropped_ = 0;
  Diagnostics diagnostics_;

  std::mutex finish_lock_;
  Diagnostics failures_;  // of the log's thread
  std::atomic<std::uint32_t> stopping_{0};
  std::thread thread_;
};

}  // namespace joulemap::capture

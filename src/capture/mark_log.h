// SPDX-License-Identifier: Apache-2.0
//
// MarkLog: what the measured program says about itself (steps, epochs, regions, windows, metrics), on its way into the
// recording, and the thread that writes it. add() takes a lock for some nanoseconds and is called by any thread; the
// log's own thread writes about twice a second, so that a killed process loses at most the last moments. A fork's child must
// leave its parent's log alone.
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

// Where everything goes: a recording, or a test. Called by one thread at a time.
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

// What the log's thread does besides writing.
struct LogErrands {
  // Is told what this thread has used itself, and returns when it wants to be called again, in nanoseconds from then.
  std::function<std::int64_t(std::int64_t own_cpu_ns)> tick;
  std::function<void(MarkSink&, bool is_last)> gather;           // before every write
  std::function<void(Diagnostics&)> tell = [](Diagnostics&) {};  // at the end
};

class MarkLog {
 public:
  explicit MarkLog(std::unique_ptr<MarkSink> sink, LogErrands errands = {});
  ~MarkLog();  // finishes
  MarkLog(const MarkLog&) = delete;
  MarkLog& operator=(const MarkLog&) = delete;

  void mark(MarkKind kind, std::uint64_t id, std::string_view name);
  // One that happened a moment ago.
  void mark_at(std::int64_t time_ns, MarkKind kind, std::uint64_t id, std::string_view name);

  // The number that was given, or one more than the last; the first is 0. Returns it.
  std::int64_t step(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name = {});
  std::int64_t epoch(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name = {});
  void metric(std::string_view name, double value, std::int64_t time_ns);
  void fact(EnvironmentFact fact);
  void diagnose(Diagnostic diagnostic);

  // Writes what is left and ends the recording's part. Nothing is taken afterwards. The first call does it, others wait.
  void finish();

 private:
  struct Batch {
    std::vector<Mark> marks;
    std::vector<Metric> metrics;
    std::vector<EnvironmentFact> facts;
  };

  std::int64_t count(MarkKind kind, std::optional<std::int64_t>& last, std::optional<std::int64_t> number,
                     std::int64_t time_ns, std::string_view name);
  void add(Mark mark);
  void run();
  void write_pending(bool is_last);

  std::unique_ptr<MarkSink> sink_;  // the log's thread, and finish() after it
  LogErrands errands_;

  std::mutex lock_;
  Batch pending_;
  std::optional<std::int64_t> step_;
  std::optional<std::int64_t> epoch_;
  std::uint64_t dropped_ = 0;
  Diagnostics told_;

  std::mutex finishing_;
  Diagnostics failures_;  // the log's thread
  std::atomic<std::uint32_t> stopping_{0};
  std::thread thread_;
};

}  // namespace joulemap::capture

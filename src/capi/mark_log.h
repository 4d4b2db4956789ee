// SPDX-License-Identifier: Apache-2.0
//
// MarkLog: what the measured program says about itself (steps, epochs, regions, windows, metrics), on its way into the
// recording. add() takes a lock for some nanoseconds and is called by any thread; a thread of the log's own writes about
// twice a second, so that a killed process loses at most the last moments. A fork's child must leave its parent's log alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "model/recorded.h"

namespace joulemap::capi {

// Where marks go: a recording, or a test. Called by one thread at a time.
class MarkSink {
 public:
  virtual ~MarkSink() = default;
  virtual void add(Mark mark) = 0;
  virtual void add(Metric metric) = 0;
  virtual Status flush() = 0;
  virtual Status finish(Diagnostics diagnostics) = 0;
};

class MarkLog {
 public:
  explicit MarkLog(std::unique_ptr<MarkSink> sink);
  ~MarkLog();  // finishes
  MarkLog(const MarkLog&) = delete;
  MarkLog& operator=(const MarkLog&) = delete;

  void mark(MarkKind kind, std::uint64_t id, std::string_view name);

  // Regions of the calling thread nest. pop is false when none is open.
  void push_region(std::string_view name);
  bool pop_region();

  // The number that was given, or one more than the last; the first is 0.
  void step(std::optional<std::int64_t> number);
  void epoch(std::optional<std::int64_t> number);
  void metric(std::string_view name, double value);

  // Writes what is left and ends the recording's part. Nothing is taken afterwards.
  void finish();

 private:
  struct Batch {
    std::vector<Mark> marks;
    std::vector<Metric> metrics;
  };

  void count(MarkKind kind, std::optional<std::int64_t>& last, std::optional<std::int64_t> number);
  void add(Mark mark);
  void run();
  void write_pending();

  std::unique_ptr<MarkSink> sink_;  // the log's thread, and finish() after it

  std::mutex lock_;
  Batch pending_;
  std::optional<std::int64_t> step_;
  std::optional<std::int64_t> epoch_;
  std::uint64_t dropped_ = 0;

  Diagnostics failures_;  // the log's thread
  std::atomic<std::uint64_t> next_region_{1};
  std::atomic<std::uint32_t> stopping_{0};
  std::thread thread_;
};

}  // namespace joulemap::capi

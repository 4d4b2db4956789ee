// SPDX-License-Identifier: Apache-2.0
//
// MarkLog: buffers what the measured program reports (steps, epochs, regions, windows, metrics) until the CaptureWorker
// writes it to the recording. Thread-safe; the reporting functions hold a lock for some nanoseconds. The child of a
// fork must not touch its parent's log.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/activity.h"
#include "model/engine_step.h"
#include "model/recorded.h"

namespace joulemap::capture {

// Destination of all captured data: a part of a recording, or a test. Called by one thread at a time.
class CaptureSink {
 public:
  virtual ~CaptureSink() = default;
  virtual void add(Mark mark) = 0;
  virtual void add(Metric metric) = 0;
  virtual void add(EnvironmentFact fact) = 0;
  virtual void add(Activity activity) = 0;
  virtual void add(EngineSteps steps) = 0;
  virtual Status flush() = 0;
  virtual Status finish(Diagnostics diagnostics) = 0;
};

class MarkLog {
 public:
  void add_mark(MarkKind kind, std::uint64_t id, std::string_view name);
  // Like add_mark(), for an event at time_ns instead of now.
  void add_mark_at(std::int64_t time_ns, MarkKind kind, std::uint64_t id, std::string_view name);

  // Records the start of a step or epoch. Returns its number: `number`, or the last one plus one; the first is 0.
  std::int64_t add_step(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name = {});
  std::int64_t add_epoch(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name = {});
  // The last `count` steps or epochs so far were none; the next one gets the number of the first of them.
  void retract_steps(std::uint64_t count);
  void retract_epochs(std::uint64_t count);
  void add_metric(std::string_view name, double value, std::int64_t time_ns);
  void add_fact(EnvironmentFact fact);
  void add_diagnostic(Diagnostic diagnostic);

  // Moves everything that is pending into `sink`; called by one thread at a time.
  void drain_into(CaptureSink& sink);
  // Diagnostics added so far, and one about dropped marks and metrics, if any.
  Diagnostics diagnostics();

 private:
  struct PendingMarks {
    std::vector<Mark> marks;
    std::vector<Metric> metrics;
    std::vector<EnvironmentFact> facts;
  };

  std::int64_t add_numbered_mark(MarkKind kind, std::optional<std::int64_t>& last_number,
                                 std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name);
  void retract(MarkKind kind, std::optional<std::int64_t>& last_number, std::uint64_t count);
  void add(Mark mark);

  std::mutex lock_;
  PendingMarks pending_marks_;
  std::optional<std::int64_t> last_step_number_;
  std::optional<std::int64_t> last_epoch_number_;
  std::uint64_t dropped_count_ = 0;
  Diagnostics diagnostics_;
};

}  // namespace joulemap::capture

// SPDX-License-Identifier: Apache-2.0
//
// ActivityWriter: takes what placing makes of a trace, stretch by stretch, into a part of a recording. Encoding takes half
// as long as placing: where the machine has another core a thread of its own does it meanwhile. What is written and in
// which order is the same either way.
//
//   ActivityWriter out(part, ActivityWriter::threads_here());
//   place_trace(trace, modules, [&](Activity activity) { out.add(std::move(activity)); });
//   Status written = out.finish();        // from here on the part is the caller's again
//
// Owned by who imports; `add` and `finish` are of one thread. Borrows the part.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "model/activity.h"
#include "recording/recording_writer.h"

namespace joulemap::ingest {

class ActivityWriter {
 public:
  // With one thread `add` itself writes.
  ActivityWriter(recording::RecordingWriter& part, std::size_t threads);
  ~ActivityWriter() { stop(); }
  ActivityWriter(const ActivityWriter&) = delete;
  ActivityWriter& operator=(const ActivityWriter&) = delete;

  // Waits where much is not written yet: memory must not grow with the trace.
  void add(Activity activity);
  // Waits until all was written. The first error, if there was one.
  Status finish();

  static std::size_t threads_here() { return std::thread::hardware_concurrency() > 1 ? 2 : 1; }

 private:
  void work();
  void write(Activity activity);
  void stop();

  recording::RecordingWriter& part_;
  Status status_ = Done{};  // of who writes, until it has ended
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Activity> waiting_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace joulemap::ingest

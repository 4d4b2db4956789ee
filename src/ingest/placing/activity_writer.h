// SPDX-License-Identifier: Apache-2.0
//
// ActivityWriter: takes what placing makes of a trace, stretch by stretch, into a part of a recording. Encoding takes as
// long as placing: where the machine has another core a thread of its own does it meanwhile, and the caller's helps where
// much waits, and at the end. What is written and in which order is the same either way.
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
#include "recording/activity_encoder.h"
#include "recording/recording_writer.h"

namespace joulemap::ingest {

class ActivityWriter {
 public:
  // With one thread `add` itself writes.
  ActivityWriter(recording::RecordingWriter& part, std::size_t threads);
  ~ActivityWriter() { stop(); }
  ActivityWriter(const ActivityWriter&) = delete;
  ActivityWriter& operator=(const ActivityWriter&) = delete;

  // Encodes itself where much waits: memory must not grow with the trace.
  void add(Activity activity);
  // All was written. The first error, if there was one.
  Status finish();

  static std::size_t threads_here() { return std::thread::hardware_concurrency() > 1 ? 2 : 1; }

 private:
  struct Stretch {
    Activity activity;
    recording::EncodedActivity encoded;
    bool is_encoded = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  void work();
  bool encode_one(Lock& lock, recording::ActivityEncoder& encoder);
  void write_encoded();
  void stop();

  recording::RecordingWriter& part_;
  recording::ActivityEncoder encoder_;  // of the caller's thread
  std::mutex mutex_;                    // of all below, and of the part
  std::condition_variable has_work_;
  std::deque<Stretch> stretches_;  // that are not written, in order; those being encoded stay where they are
  std::size_t begun_ = 0;          // of these, how many are encoded or being so
  bool is_over_ = false;
  Status status_ = Done{};
  std::thread thread_;
};

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
//
// ActivityWriter encodes the Activity slices that scope assignment makes of a trace and writes them into a part of a
// recording. Encoding takes as long as the assignment. On a machine with more than one core a second thread encodes in
// parallel. The caller's thread also encodes when the queue is long and at the end. The result does not depend on the
// number of threads.
//
//   ActivityWriter out(part, ActivityWriter::default_thread_count());
//   assign_scopes(trace, modules, [&](Activity activity) { out.add(std::move(activity)); });
//   Status written = out.finish();  // afterwards the caller may use the part again
//
// Owned by the importer. One thread calls `add` and `finish`. Borrows the part.
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
  // With one thread, `add` encodes and writes synchronously.
  ActivityWriter(recording::RecordingWriter& part, std::size_t threads);
  ~ActivityWriter() { stop(); }
  ActivityWriter(const ActivityWriter&) = delete;
  ActivityWriter& operator=(const ActivityWriter&) = delete;

  // Encodes on the calling thread when the queue is long: memory must not grow with the trace.
  void add(Activity activity);
  // Returns when everything is written, with the first error if there was one.
  Status finish();

  static std::size_t default_thread_count() { return std::thread::hardware_concurrency() > 1 ? 2 : 1; }

 private:
  struct Slice {
    Activity activity;
    recording::EncodedActivity encoded_activity;
    bool is_encoded = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  void run_worker();
  bool encode_next_slice(Lock& lock, recording::ActivityEncoder& encoder);
  void write_encoded_slices();
  void stop();

  recording::RecordingWriter& recording_writer_;
  recording::ActivityEncoder encoder_;  // used by the caller's thread
  std::mutex mutex_;                    // guards everything below, and the part
  std::condition_variable work_available_;
  std::deque<Slice> slices_;             // not yet written, in time order; a slice stays here while it is encoded
  std::size_t claimed_slice_count_ = 0;  // count of slices, at the front, that are encoded or being encoded
  bool is_stopping_ = false;
  Status status_ = Done{};
  std::thread worker_;
};

}  // namespace joulemap::ingest

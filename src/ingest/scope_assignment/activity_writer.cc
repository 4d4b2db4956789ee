// SPDX-License-Identifier: Apache-2.0
#include "ingest/scope_assignment/activity_writer.h"

#include <utility>

#include "base/scoped_signal_block.h"

namespace joulemap::ingest {
namespace {

// The part is flushed to its file after this many encoded time slices. Also the limit of slices that wait for encoding.
constexpr std::size_t kSlicesPerFlush = 64;

}  // namespace

ActivityWriter::ActivityWriter(recording::RecordingWriter& part, std::size_t threads)
    : recording_writer_(part), encoder_(part.activity_encoder()) {
  if (threads < 2) return;
  const ScopedSignalBlock signal_block;
  worker_ = std::thread([this] { run_worker(); });
}

void ActivityWriter::add(Activity activity) {
  Lock lock(mutex_);
  slices_.push_back({std::move(activity), {}});
  const std::size_t max_pending_slices = worker_.joinable() ? kSlicesPerFlush : 0;
  while (slices_.size() - claimed_slice_count_ > max_pending_slices) encode_next_slice(lock, encoder_);
  const bool may_workers_sleep = slices_.size() - claimed_slice_count_ == 1;
  lock.unlock();
  if (may_workers_sleep) work_available_.notify_one();
}

void ActivityWriter::run_worker() {
  recording::ActivityEncoder encoder = recording_writer_.activity_encoder();
  Lock lock(mutex_);
  while (true) {
    while (encode_next_slice(lock, encoder)) {
    }
    if (is_stopping_) return;
    work_available_.wait(lock);
  }
}

// Encodes the first slice that no thread has started. Returns false if there is none. Releases the lock meanwhile.
bool ActivityWriter::encode_next_slice(Lock& lock, recording::ActivityEncoder& encoder) {
  if (claimed_slice_count_ == slices_.size()) return false;
  Slice& slice = slices_[claimed_slice_count_++];
  lock.unlock();
  slice.encoded_activity = encoder.encode(std::move(slice.activity));
  lock.lock();
  slice.is_encoded = true;
  write_encoded_slices();
  return true;
}

// Writes the encoded slices at the front of the queue, in order.
void ActivityWriter::write_encoded_slices() {
  for (; !slices_.empty() && slices_.front().is_encoded; --claimed_slice_count_) {
    recording_writer_.add(std::move(slices_.front().encoded_activity));
    slices_.pop_front();
    if (recording_writer_.pending_item_count() < kSlicesPerFlush) continue;
    Status flush_status = recording_writer_.flush();
    if (status_ && !flush_status) status_ = std::move(flush_status);
  }
}

void ActivityWriter::stop() {
  if (!worker_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  work_available_.notify_one();
  worker_.join();
}

Status ActivityWriter::finish() {
  {
    Lock lock(mutex_);
    while (encode_next_slice(lock, encoder_)) {
    }
  }
  stop();
  return std::exchange(status_, Done{});
}

}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
#include "ingest/placing/activity_writer.h"

#include <utility>

#include "base/signal_shield.h"

namespace joulemap::ingest {
namespace {

// The writer flushes after about this many encoded time slices. It is also the limit of the encoding queue.
constexpr std::size_t kStretchesPerFlush = 64;

}  // namespace

ActivityWriter::ActivityWriter(recording::RecordingWriter& part, std::size_t threads)
    : part_(part), encoder_(part.activity_encoder()) {
  if (threads < 2) return;
  const SignalShield signals_are_for_the_program;
  thread_ = std::thread([this] { work(); });
}

void ActivityWriter::add(Activity activity) {
  Lock lock(mutex_);
  stretches_.push_back({std::move(activity), {}});
  const std::size_t most = thread_.joinable() ? kStretchesPerFlush : 0;
  while (stretches_.size() - begun_ > most) encode_one(lock, encoder_);
  const bool may_sleep = stretches_.size() - begun_ == 1;
  lock.unlock();
  if (may_sleep) has_work_.notify_one();
}

void ActivityWriter::work() {
  recording::ActivityEncoder encoder = part_.activity_encoder();
  Lock lock(mutex_);
  while (true) {
    while (encode_one(lock, encoder)) {
    }
    if (is_over_) return;
    has_work_.wait(lock);
  }
}

// Encodes the first slice that no thread has started. Returns false if there is none. Releases the lock meanwhile.
bool ActivityWriter::encode_one(Lock& lock, recording::ActivityEncoder& encoder) {
  if (begun_ == stretches_.size()) return false;
  Stretch& stretch = stretches_[begun_++];
  lock.unlock();
  stretch.encoded = encoder.encode(std::move(stretch.activity));
  lock.lock();
  stretch.is_encoded = true;
  write_encoded();
  return true;
}

// Writes the encoded slices at the front of the queue, in order.
void ActivityWriter::write_encoded() {
  for (; !stretches_.empty() && stretches_.front().is_encoded; --begun_) {
    part_.add(std::move(stretches_.front().encoded));
    stretches_.pop_front();
    if (part_.pending() < kStretchesPerFlush) continue;
    Status written = part_.flush();
    if (status_ && !written) status_ = std::move(written);
  }
}

void ActivityWriter::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  has_work_.notify_one();
  thread_.join();
}

Status ActivityWriter::finish() {
  {
    Lock lock(mutex_);
    while (encode_one(lock, encoder_)) {
    }
  }
  stop();
  return std::exchange(status_, Done{});
}

}  // namespace joulemap::ingest

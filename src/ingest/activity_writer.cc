// SPDX-License-Identifier: Apache-2.0
#include "ingest/activity_writer.h"

#include <utility>

#include "base/signal_shield.h"

namespace joulemap::ingest {
namespace {

// Chunks are written when about so many stretches are encoded, and no more wait to be.
constexpr std::size_t kStretchesPerFlush = 64;

}  // namespace

ActivityWriter::ActivityWriter(recording::RecordingWriter& part, std::size_t threads) : part_(part) {
  if (threads < 2) return;
  const SignalShield signals_are_for_the_program;
  thread_ = std::thread([this] { work(); });
}

void ActivityWriter::add(Activity activity) {
  if (!thread_.joinable()) return write(std::move(activity));
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.size() < kStretchesPerFlush; });
  waiting_.push_back(std::move(activity));
  const bool may_sleep = waiting_.size() == 1;
  lock.unlock();
  if (may_sleep) changed_.notify_one();
}

void ActivityWriter::work() {
  std::deque<Activity> taken;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_over_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      std::swap(taken, waiting_);
    }
    changed_.notify_one();
    for (Activity& activity : taken) write(std::move(activity));
    taken.clear();
  }
}

void ActivityWriter::write(Activity activity) {
  part_.add(std::move(activity));
  if (part_.pending() < kStretchesPerFlush) return;
  Status written = part_.flush();
  if (status_ && !written) status_ = std::move(written);
}

void ActivityWriter::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

Status ActivityWriter::finish() {
  stop();
  return std::exchange(status_, Done{});
}

}  // namespace joulemap::ingest

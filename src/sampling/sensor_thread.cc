// SPDX-License-Identifier: Apache-2.0
#include "sampling/sensor_thread.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/scoped_signal_block.h"

namespace joulemap::sampling {
namespace {

using sensors::SamplingMode;

// A ring holds ten seconds of a channel that is read a hundred times a second, or 0.1 s in near_edge mode.
constexpr std::size_t kSamplesPerChannel = 1024;

// How much the kernel may delay the thread's timers to save wake-ups. Its default of 50 us is half of the read period
// near an edge.
constexpr unsigned long kTimerSlack_ns = 1000;

std::string name_of(const sensors::Sensor& sensor) {
  const std::span<const Channel> channels = sensor.channels();
  if (channels.empty()) return {};
  const Channel& first = channels.front();
  return first.device.empty() ? first.sensor : first.sensor + " " + first.domain;
}

}  // namespace

SensorThread::SensorThread(std::unique_ptr<sensors::Sensor> sensor, std::uint32_t first_channel)
    : sensor_(std::move(sensor)),
      first_channel_(first_channel),
      readings_(sensor_->channels().size()),
      ring_(kSamplesPerChannel * std::max<std::size_t>(readings_.size(), 1)) {
  cost_.sensor = name_of(*sensor_);
}

SensorThread::~SensorThread() {
  JOULEMAP_CHECK(!thread_.joinable(), "a thread is stopped or abandoned before it is destroyed");
}

void SensorThread::start() {
  const std::string name = std::move(cost_.sensor);
  cost_ = {};
  cost_.sensor = name;
  lost_before_start_ = ring_.lost_count();
  stopping_.store(false);
  has_finished_.store(0);
  const ScopedSignalBlock signals_are_for_the_program;
  thread_ = std::thread([this] { run(); });
}

void SensorThread::request_stop() {
  stopping_.store(true);
  wake();
}

bool SensorThread::wait_for_stop(std::int64_t deadline_ns) {
  if (!thread_.joinable()) return true;
  while (has_finished_.load(std::memory_order_acquire) == 0) {
    if (monotonic_ns() >= deadline_ns) {
      thread_.detach();
      return false;
    }
    wait_for_change(has_finished_, 0, deadline_ns);
  }
  thread_.join();
  return true;
}

void SensorThread::wake() {
  wake_count_.fetch_add(1, std::memory_order_release);
  wake_all(wake_count_);
}

void SensorThread::set_mode(SamplingMode mode) {
  if (mode_.exchange(mode) != mode) wake();
}

void SensorThread::request_read() {
  requested_reads_.fetch_add(1);
  wake();
}

bool SensorThread::is_read_done() const {
  return completed_reads_.load(std::memory_order_acquire) == requested_reads_.load();
}

bool SensorThread::wait_for_read(std::int64_t deadline_ns) const {
  while (!is_read_done()) {
    const std::uint32_t completed = completed_reads_.load(std::memory_order_acquire);
    if (completed == requested_reads_.load()) break;
    if (monotonic_ns() >= deadline_ns) return false;
    wait_for_change(completed_reads_, completed, deadline_ns);
  }
  return true;
}

SamplerCost SensorThread::cost() const {
  SamplerCost cost = cost_;
  cost.lost_samples = ring_.lost_count() - lost_before_start_;
  return cost;
}

void SensorThread::read(SamplingMode mode) noexcept {
  sensor_->read(readings_, mode);
  ++cost_.reads;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    if (readings_[i].code == ReadCode::skipped) continue;
    ring_.push({first_channel_ + static_cast<std::uint32_t>(i), readings_[i]});
  }
  for (const Sample& sample : sensor_->history()) ring_.push({first_channel_ + sample.channel, sample.reading});
}

void SensorThread::read_when_due(SamplingMode mode) noexcept {
  cost_.lateness.add(monotonic_ns() - deadline_ns_);
  read(mode);
  const std::int64_t next_ns = sensor_->next_read_ns(deadline_ns_, mode);
  const std::int64_t period_ns = std::max<std::int64_t>(next_ns - deadline_ns_, 1);
  const std::int64_t behind_ns = monotonic_ns() - next_ns;
  const std::int64_t missed = behind_ns >= 0 ? behind_ns / period_ns + 1 : 0;
  cost_.missed_ticks += static_cast<std::uint64_t>(missed);
  deadline_ns_ = next_ns + missed * period_ns;
}

void SensorThread::run() noexcept {
  ::prctl(PR_SET_TIMERSLACK, kTimerSlack_ns, 0, 0, 0);
  pthread_setname_np(pthread_self(), "joulemap");
  deadline_ns_ = monotonic_ns();
  SamplingMode mode = mode_.load();
  while (true) {
    const std::uint32_t wakes = wake_count_.load(std::memory_order_acquire);
    // Checked before stopping_: on a busy machine this thread may see the request for the last reading of a run only
    // after the request to stop.
    if (const std::uint32_t requested = requested_reads_.load();
        requested != completed_reads_.load(std::memory_order_relaxed)) {
      read(SamplingMode::immediate);
      completed_reads_.store(requested, std::memory_order_release);
      wake_all(completed_reads_);
      continue;
    }
    if (stopping_.load()) break;
    if (const SamplingMode wanted = mode_.load(); wanted != mode) {
      mode = wanted;
      deadline_ns_ = std::min(deadline_ns_, sensor_->next_read_ns(monotonic_ns(), mode));
    }
    if (monotonic_ns() >= deadline_ns_) {
      read_when_due(mode);
    } else {
      wait_for_change(wake_count_, wakes, deadline_ns_);
    }
  }
  cost_.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  has_finished_.store(1, std::memory_order_release);
  wake_all(has_finished_);
}

}  // namespace joulemap::sampling

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
constexpr std::size_t kRingSamplesPerChannel = 1024;

// How much the kernel may delay the thread's timers to save wake-ups. Its default of 50 us is half of the read period
// near an edge.
constexpr unsigned long kTimerSlack_ns = 1000;

std::string sensor_name(const sensors::Sensor& sensor) {
  const std::span<const Channel> channels = sensor.channels();
  if (channels.empty()) return {};
  const Channel& first_channel = channels.front();
  return first_channel.device.empty() ? first_channel.sensor : first_channel.sensor + " " + first_channel.domain;
}

}  // namespace

SensorThread::SensorThread(std::unique_ptr<sensors::Sensor> sensor, std::uint32_t first_channel)
    : sensor_(std::move(sensor)),
      first_channel_(first_channel),
      readings_(sensor_->channels().size()),
      sample_ring_(kRingSamplesPerChannel * std::max<std::size_t>(readings_.size(), 1)) {
  read_cost_.sensor = sensor_name(*sensor_);
}

SensorThread::~SensorThread() {
  JOULEMAP_CHECK(!thread_.joinable(), "a thread is stopped or abandoned before it is destroyed");
}

void SensorThread::start() {
  const std::string name = std::move(read_cost_.sensor);
  read_cost_ = {};
  read_cost_.sensor = name;
  lost_count_before_start_ = sample_ring_.lost_count();
  stop_requested_.store(false);
  has_finished_.store(0);
  const ScopedSignalBlock signal_block;
  thread_ = std::thread([this] { run(); });
}

void SensorThread::request_stop() {
  stop_requested_.store(true);
  wake_thread();
}

bool SensorThread::wait_for_stop(std::int64_t deadline_ns) {
  if (!thread_.joinable()) return true;
  while (has_finished_.load(std::memory_order_acquire) == 0) {
    if (monotonic_ns() >= deadline_ns) {
      thread_.detach();
      return false;
    }
    wait_for_word_change(has_finished_, 0, deadline_ns);
  }
  thread_.join();
  return true;
}

void SensorThread::wake_thread() {
  wake_count_.fetch_add(1, std::memory_order_release);
  wake_all_waiters(wake_count_);
}

void SensorThread::set_mode(SamplingMode mode) {
  if (sampling_mode_.exchange(mode) != mode) wake_thread();
}

void SensorThread::request_read() {
  requested_read_count_.fetch_add(1);
  wake_thread();
}

bool SensorThread::is_read_done() const {
  return completed_read_count_.load(std::memory_order_acquire) == requested_read_count_.load();
}

bool SensorThread::wait_for_read(std::int64_t deadline_ns) const {
  while (!is_read_done()) {
    const std::uint32_t completed_count = completed_read_count_.load(std::memory_order_acquire);
    if (completed_count == requested_read_count_.load()) break;
    if (monotonic_ns() >= deadline_ns) return false;
    wait_for_word_change(completed_read_count_, completed_count, deadline_ns);
  }
  return true;
}

SamplerCost SensorThread::read_cost() const {
  SamplerCost cost = read_cost_;
  cost.lost_samples = sample_ring_.lost_count() - lost_count_before_start_;
  return cost;
}

void SensorThread::read(SamplingMode mode) noexcept {
  sensor_->read(readings_, mode);
  ++read_cost_.reads;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    if (readings_[i].code == ReadCode::skipped) continue;
    sample_ring_.push({first_channel_ + static_cast<std::uint32_t>(i), readings_[i]});
  }
  for (const Sample& sample : sensor_->history()) sample_ring_.push({first_channel_ + sample.channel, sample.reading});
}

void SensorThread::sleep_and_read(SamplingMode mode) noexcept {
  read_cost_.lateness.add(monotonic_ns() - next_read_ns_);
  read(mode);
  const std::int64_t next_ns = sensor_->next_read_ns(next_read_ns_, mode);
  const std::int64_t period_ns = std::max<std::int64_t>(next_ns - next_read_ns_, 1);
  const std::int64_t lateness_ns = monotonic_ns() - next_ns;
  const std::int64_t missed_tick_count = lateness_ns >= 0 ? lateness_ns / period_ns + 1 : 0;
  read_cost_.missed_ticks += static_cast<std::uint64_t>(missed_tick_count);
  next_read_ns_ = next_ns + missed_tick_count * period_ns;
}

void SensorThread::run() noexcept {
  ::prctl(PR_SET_TIMERSLACK, kTimerSlack_ns, 0, 0, 0);
  pthread_setname_np(pthread_self(), "joulemap");
  next_read_ns_ = monotonic_ns();
  SamplingMode mode = sampling_mode_.load();
  while (true) {
    const std::uint32_t wake_count = wake_count_.load(std::memory_order_acquire);
    // Checked before stop_requested_: on a busy machine this thread may see the request for the last reading of a run
    // only after the request to stop.
    if (const std::uint32_t requested_count = requested_read_count_.load();
        requested_count != completed_read_count_.load(std::memory_order_relaxed)) {
      read(SamplingMode::immediate);
      completed_read_count_.store(requested_count, std::memory_order_release);
      wake_all_waiters(completed_read_count_);
      continue;
    }
    if (stop_requested_.load()) break;
    if (const SamplingMode requested_mode = sampling_mode_.load(); requested_mode != mode) {
      mode = requested_mode;
      next_read_ns_ = std::min(next_read_ns_, sensor_->next_read_ns(monotonic_ns(), mode));
    }
    if (monotonic_ns() >= next_read_ns_) {
      sleep_and_read(mode);
    } else {
      wait_for_word_change(wake_count_, wake_count, next_read_ns_);
    }
  }
  read_cost_.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  has_finished_.store(1, std::memory_order_release);
  wake_all_waiters(has_finished_);
}

}  // namespace joulemap::sampling

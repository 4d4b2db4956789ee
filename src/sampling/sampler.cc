// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampler.h"

#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "sampling/sensor_thread.h"

namespace joulemap::sampling {
namespace {

constexpr std::int64_t kStopTimeout_ns = kNanosecondsPerSecond;

}  // namespace

Sampler::Sampler(std::vector<std::unique_ptr<sensors::Sensor>> sensors) {
  for (std::unique_ptr<sensors::Sensor>& sensor : sensors) {
    const auto first_channel = static_cast<std::uint32_t>(channels_.size());
    for (const Channel& channel : sensor->channels()) channels_.push_back(channel);
    channel_ranges_.push_back({first_channel, sensor->channels().size()});
    sensor_threads_.push_back(std::make_unique<SensorThread>(std::move(sensor), first_channel));
    sample_rings_.push_back(&sensor_threads_.back()->sample_ring());
  }
}

Sampler::Sampler(Sampler&& other_sampler) noexcept { *this = std::move(other_sampler); }
Sampler& Sampler::operator=(Sampler&& other_sampler) noexcept {
  stop();
  sensor_threads_ = std::move(other_sampler.sensor_threads_);
  sample_rings_ = std::move(other_sampler.sample_rings_);
  channels_ = std::move(other_sampler.channels_);
  channel_ranges_ = std::move(other_sampler.channel_ranges_);
  hanging_thread_count_ = other_sampler.hanging_thread_count_;
  is_running_ = std::exchange(other_sampler.is_running_, false);
  return *this;
}
Sampler::~Sampler() { stop(); }

Sampler::ChannelRange Sampler::channels_of(std::size_t sensor) const { return channel_ranges_[sensor]; }

void Sampler::start() {
  JOULEMAP_CHECK(!is_running_, "a sampler can be started only once");
  for (const std::unique_ptr<SensorThread>& thread : sensor_threads_) {
    if (thread) thread->start();
  }
  is_running_ = true;
}

// A device that hangs in a read must not block the owner: the object of its thread is leaked, because the thread may
// resume. Its samples so far can still be drained.
void Sampler::stop() {
  for (const std::unique_ptr<SensorThread>& thread : sensor_threads_) {
    if (thread) thread->request_stop();
  }
  const std::int64_t deadline_ns = monotonic_ns() + kStopTimeout_ns;
  for (std::unique_ptr<SensorThread>& thread : sensor_threads_) {
    if (thread && !thread->wait_for_stop(deadline_ns)) {
      ++hanging_thread_count_;
      static_cast<void>(thread.release());
    }
  }
  is_running_ = false;
}

void Sampler::set_mode(sensors::SamplingMode mode) {
  for (const std::unique_ptr<SensorThread>& thread : sensor_threads_) {
    if (thread) thread->set_mode(mode);
  }
}

void Sampler::set_mode(std::size_t sensor, sensors::SamplingMode mode) {
  if (sensor_threads_[sensor]) sensor_threads_[sensor]->set_mode(mode);
}

bool Sampler::read_all_sensors(std::int64_t timeout_ns) {
  JOULEMAP_CHECK(is_running_, "only a running sampler reads");
  const std::int64_t deadline_ns = monotonic_ns() + timeout_ns;
  for (const std::unique_ptr<SensorThread>& thread : sensor_threads_) {
    if (thread) thread->request_read();
  }
  bool is_read_complete = hanging_thread_count_ == 0;
  for (const std::unique_ptr<SensorThread>& thread : sensor_threads_) {
    if (thread) is_read_complete = thread->wait_for_read(deadline_ns) && is_read_complete;
  }
  return is_read_complete;
}

std::vector<SamplerCost> Sampler::costs() const {
  JOULEMAP_CHECK(!is_running_, "costs are available only after stop()");
  std::vector<SamplerCost> costs;
  for (const std::unique_ptr<SensorThread>& thread : sensor_threads_) {
    if (thread) costs.push_back(thread->read_cost());
  }
  return costs;
}

}  // namespace joulemap::sampling

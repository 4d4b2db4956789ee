// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampler.h"

#include "base/check.h"
#include "base/clock.h"
#include "sampling/sensor_thread.h"

namespace joulemap::sampling {

Sampler::Sampler(std::vector<std::unique_ptr<sensors::Sensor>> sensors) {
  for (std::unique_ptr<sensors::Sensor>& sensor : sensors) {
    const auto first = static_cast<std::uint32_t>(channels_.size());
    for (const Channel& channel : sensor->channels()) channels_.push_back(channel);
    threads_.push_back(std::make_unique<SensorThread>(std::move(sensor), first));
    rings_.push_back(&threads_.back()->ring());
  }
}

Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;
Sampler::~Sampler() = default;  // a thread stops when it is destroyed

Sampler::ChannelRange Sampler::channels_of(std::size_t sensor) const {
  return {threads_[sensor]->first_channel(), threads_[sensor]->sensor().channels().size()};
}

void Sampler::start() {
  JOULEMAP_CHECK(!running_, "a sampler is started once");
  for (const std::unique_ptr<SensorThread>& thread : threads_) thread->start();
  running_ = true;
}

void Sampler::stop() {
  for (const std::unique_ptr<SensorThread>& thread : threads_) thread->stop();
  running_ = false;
}

void Sampler::pay(sensors::Attention attention) {
  for (const std::unique_ptr<SensorThread>& thread : threads_) thread->pay(attention);
}

void Sampler::pay(std::size_t sensor, sensors::Attention attention) { threads_[sensor]->pay(attention); }

bool Sampler::read_now(std::int64_t timeout_ns) {
  JOULEMAP_CHECK(running_, "only a running sampler reads");
  const std::int64_t deadline_ns = monotonic_ns() + timeout_ns;
  for (const std::unique_ptr<SensorThread>& thread : threads_) thread->ask();
  bool all = true;
  for (const std::unique_ptr<SensorThread>& thread : threads_) all = thread->wait_for_answer(deadline_ns) && all;
  return all;
}

std::vector<SamplerCost> Sampler::costs() const {
  JOULEMAP_CHECK(!running_, "costs are told after stop()");
  std::vector<SamplerCost> costs;
  for (const std::unique_ptr<SensorThread>& thread : threads_) costs.push_back(thread->cost());
  return costs;
}

}  // namespace joulemap::sampling

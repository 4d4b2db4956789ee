// SPDX-License-Identifier: Apache-2.0
//
// Sampler: reads every sensor on time, each on a thread of its own, so that a slow one (an NVML energy counter takes
// milliseconds) never delays a quick one. Deadlines are absolute; after start() the threads neither allocate nor lock
// nor log. One owner, which starts, drains and stops it from one thread.
//
//   Sampler sampler(std::move(sensors));
//   sampler.start();
//   sampler.pay(Attention::close);               // near the edge of a window
//   sampler.read_now(timeout_ns);                // a fresh reading of everything
//   sampler.drain([](const Sample& sample) {});  // often enough: a ring holds about ten seconds
//   sampler.stop();
//
// The threads block all signals: those are for the program we live in. A fork's child has no such threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/channel.h"
#include "model/sampler_cost.h"
#include "sampling/sample_ring.h"
#include "sensors/sensor.h"

namespace joulemap::sampling {

class SensorThread;

class Sampler {
 public:
  explicit Sampler(std::vector<std::unique_ptr<sensors::Sensor>> sensors);
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();  // stops

  // Of all sensors, in their order: what Sample::channel counts in.
  std::span<const Channel> channels() const { return channels_; }
  std::size_t sensor_count() const { return threads_.size(); }
  // The channels of one sensor: its first, and how many.
  struct ChannelRange {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  ChannelRange channels_of(std::size_t sensor) const;

  void start();
  // Waits a second at most for a sensor that hangs in a read; hanging() then counts it, and it is not used again.
  void stop();
  std::size_t hanging() const { return hanging_; }
  bool is_running() const { return running_; }

  // How closely the sensors are watched from now on; takes effect at once, even on a thread that sleeps.
  void pay(sensors::Attention attention);
  void pay(std::size_t sensor, sensors::Attention attention);

  // Asks every sensor for a reading of all its channels and waits until all have answered, at most timeout_ns. False when
  // one has not: a device that hangs must not hang us.
  bool read_now(std::int64_t timeout_ns);

  // Hands out what was read since the last call: of one channel in order of time.
  template <class Use>
  void drain(Use&& use) {
    for (SampleRing* ring : rings_) ring->drain(use);
  }

  // Of the time between start and stop, one for each sensor; after stop().
  std::vector<SamplerCost> costs() const;

 private:
  std::vector<std::unique_ptr<SensorThread>> threads_;  // none where a thread hung and was given up
  std::vector<SampleRing*> rings_;
  std::vector<Channel> channels_;
  std::vector<ChannelRange> ranges_;
  std::size_t hanging_ = 0;
  bool running_ = false;
};

}  // namespace joulemap::sampling

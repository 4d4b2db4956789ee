// SPDX-License-Identifier: Apache-2.0
//
// Sampler: reads every sensor on schedule, each on its own thread, so that a slow sensor (an NVML energy counter takes
// milliseconds) never delays a fast one. Deadlines are absolute; after start() the threads neither allocate nor lock
// nor log. One owner starts, drains and stops it from one thread.
//
//   Sampler sampler(std::move(sensors));
//   sampler.start();
//   sampler.set_mode(SamplingMode::near_edge);   // near the edge of a window
//   sampler.read_now(timeout_ns);                // a new reading of every channel
//   sampler.drain([](const Sample& sample) {});  // often enough: a ring holds about ten seconds, 0.1 s near an edge
//   sampler.stop();
//
// The threads block all signals: signals belong to the host program. The child of a fork has no such threads.
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
  ~Sampler();  // stops the threads

  // The channels of all sensors, in order: the list that Sample::channel indexes.
  std::span<const Channel> channels() const { return channels_; }
  std::size_t sensor_count() const { return sensor_threads_.size(); }
  // The channels of one sensor: index of the first, and count.
  struct ChannelRange {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  ChannelRange channels_of(std::size_t sensor) const;

  void start();
  // Waits at most a second for sensors that hang in a read. hanging_thread_count() then counts them, and they are not
  // used again.
  void stop();
  std::size_t hanging_thread_count() const { return hanging_thread_count_; }
  bool is_running() const { return is_running_; }

  // Sets the sampling mode of the sensors; takes effect at once, even on a sleeping thread.
  void set_mode(sensors::SamplingMode mode);
  void set_mode(std::size_t sensor, sensors::SamplingMode mode);

  // Requests a reading of all channels from every sensor and waits at most timeout_ns for all answers. Returns false
  // when one is missing: a hanging device must not block the caller.
  bool read_all_sensors(std::int64_t timeout_ns);

  // Delivers the samples since the last call; in order of time within each channel.
  template <class Use>
  void drain(Use&& use) {
    for (SampleRing* ring : sample_rings_) ring->drain(use);
  }

  // One entry per sensor that does not hang, for the time between start() and stop(); valid after stop().
  std::vector<SamplerCost> costs() const;

 private:
  std::vector<std::unique_ptr<SensorThread>> sensor_threads_;  // null when a thread hung and was abandoned
  std::vector<SampleRing*> sample_rings_;
  std::vector<Channel> channels_;
  std::vector<ChannelRange> channel_ranges_;
  std::size_t hanging_thread_count_ = 0;
  bool is_running_ = false;
};

}  // namespace joulemap::sampling

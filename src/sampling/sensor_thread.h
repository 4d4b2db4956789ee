// SPDX-License-Identifier: Apache-2.0
//
// SensorThread: the thread that reads one sensor. It sleeps until the sensor's next deadline and can be woken earlier:
// to change the sampling mode, to read at once, to stop. The owner of the Sampler creates, controls and destroys it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "model/sampler_cost.h"
#include "sampling/sample_ring.h"
#include "sensors/sensor.h"

namespace joulemap::sampling {

class SensorThread {
 public:
  // `first_channel`: index of this sensor's first channel in the sampler's list.
  SensorThread(std::unique_ptr<sensors::Sensor> sensor, std::uint32_t first_channel);
  SensorThread(const SensorThread&) = delete;
  SensorThread& operator=(const SensorThread&) = delete;
  ~SensorThread();

  const sensors::Sensor& sensor() const { return *sensor_; }
  std::uint32_t first_channel() const { return first_channel_; }
  SampleRing& sample_ring() { return sample_ring_; }

  void start();
  void request_stop();
  // Returns false when the thread hangs in a read beyond deadline_ns. The thread is then abandoned, and this object
  // must never be destroyed, because the thread may resume.
  bool wait_for_stop(std::int64_t deadline_ns);

  void set_mode(sensors::SamplingMode mode);
  // Requests a reading of all channels; is_read_done() is true once it is in the ring.
  void request_read();
  bool is_read_done() const;
  // Waits for the requested reading until deadline_ns of CLOCK_MONOTONIC. Returns false if it is not done by then.
  bool wait_for_read(std::int64_t deadline_ns) const;

  // Cost of the reads since the last start(). Valid only while the thread does not run.
  SamplerCost read_cost() const;

 private:
  void run() noexcept;
  void read(sensors::SamplingMode mode) noexcept;
  void sleep_and_read(sensors::SamplingMode mode) noexcept;
  void wake_thread();

  std::unique_ptr<sensors::Sensor> sensor_;
  std::uint32_t first_channel_;
  std::vector<Reading> readings_;
  SampleRing sample_ring_;
  std::uint64_t lost_count_before_start_ = 0;  // samples lost by the ring before the last start
  std::thread thread_;

  // Written by the owner, read by the thread. Each change increments `wake_count_`, on which the thread sleeps.
  std::atomic<std::uint32_t> wake_count_{0};
  std::atomic<std::uint32_t> requested_read_count_{0};
  std::atomic<sensors::SamplingMode> sampling_mode_{sensors::SamplingMode::relaxed};
  std::atomic<bool> stop_requested_{false};
  // Written by the thread, read by the owner.
  std::atomic<std::uint32_t> completed_read_count_{0};
  std::atomic<std::uint32_t> has_finished_{0};

  // Used by the thread only.
  std::int64_t next_read_ns_ = 0;
  SamplerCost read_cost_;
};

}  // namespace joulemap::sampling

// SPDX-License-Identifier: Apache-2.0
//
// Meter: the open sensors of this machine and the energy that they measure between begin() and end(). One owner, one
// thread; the threads of its Sampler read the sensors.
//
//   Result<Meter> meter = Meter::open({.root = root});
//   meter->prepare();  // starts the threads; takes a few milliseconds to find the update times of the counters
//   meter->begin();
//   ... meter->sample() every meter->period_ns() ...
//   meter->end();      // waits for the next counter update after the window
//   DomainTable table = meter->result();
//
// It can be reused for one window after another. Its memory is bounded, however long the window.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/system_root.h"
#include "energy/energy_curves.h"
#include "energy/make_domain_table.h"
#include "model/sample.h"
#include "model/sensor_status.h"
#include "sampling/open_sensors.h"
#include "sampling/sampler.h"
#include "sensors/sensor.h"

namespace joulemap::sampling {

class Meter {
 public:
  // Fails only for an unknown sensor name. A machine without sensors gives a meter without channels.
  static Result<Meter> open(const SensorOptions& options);
  Meter(std::vector<SensorStatus> statuses, Sampler sampler);

  std::span<const SensorStatus> sensors() const { return sensor_statuses_; }
  bool has_channels() const { return !sampler_.channels().empty(); }
  // Interval until the next call of sample(): short at the begin of a window, until every counter has updated.
  std::int64_t period_ns() const;

  // The callback receives every sample, including failed reads and channels without energy. The recorder uses it.
  // Called on the owner's thread.
  void set_sample_callback(std::function<void(const Sample&)> callback) { sample_callback_ = std::move(callback); }
  std::span<const Channel> channels() const { return sampler_.channels(); }

  void prepare();
  void begin();
  void sample();  // processes what the sensor threads have read
  // Between edges: whether counters that are expensive to read are read at each of their updates, beyond their usual
  // limit of CPU time.
  void set_reading_every_update(bool reads_every_update);
  void read_all_sensors();  // reads every sensor now and processes the samples
  void end();

  std::int64_t begin_ns() const { return begin_ns_; }
  std::int64_t end_ns() const { return end_ns_; }
  double elapsed_s() const;
  // CPU time of this process between begin and end.
  double overhead_cpu_s() const;
  // Timeliness and cost of the reads by sensor, for the last ended window.
  const std::vector<SamplerCost>& sampler_costs() const { return sampler_costs_; }

  // Energy since the last call (or since begin()), as the counters show it, without interpolation or uncertainty. A
  // counter without an update since then has no value and the reason "no-step".
  std::vector<DomainEnergy> energy_since_last_call(double elapsed_s);

  // Energy since begin() up to the last readings; reads no sensor.
  std::vector<DomainEnergy> energy_since_begin() const;

  // Energy of the last ended window, including faults.
  DomainTable result() const;

 private:
  bool is_settled(const EnergyCurve& curve) const;
  bool is_settled(std::size_t sensor) const;
  bool are_all_curves_settled() const;
  void process_samples();
  void relax_settled_sensors();
  void wait_until_settled(std::int64_t deadline_ns, std::int64_t period_ns);
  std::int64_t slowest_update_period_ns() const;

  std::vector<SensorStatus> sensor_statuses_;
  Sampler sampler_;
  EnergyCurves curves_;
  bool has_ended_ = false;
  std::function<void(const Sample&)> sample_callback_;
  struct CurveState {
    double joules = 0;
    std::uint64_t update_count = 0;
  };
  std::vector<CurveState> curve_states_at_last_call_;  // state of each curve at the last energy_since_last_call()
  std::vector<std::uint64_t> update_counts_at_begin_;
  std::vector<double> energies_at_begin_j_;  // of each curve, in J
  std::vector<SamplerCost> sampler_costs_;
  bool cross_checks_estimates_ = false;  // --sensors names `estimate`: it becomes a cross-check of measured domains
  bool are_all_sensors_relaxed_ = false;
  sensors::SamplingMode mode_between_edges_ = sensors::SamplingMode::relaxed;
  std::int64_t begin_ns_ = 0;
  std::int64_t end_ns_ = 0;
  std::int64_t process_cpu_at_begin_ns_ = 0;
  std::int64_t process_cpu_at_end_ns_ = 0;
};

}  // namespace joulemap::sampling

// SPDX-License-Identifier: Apache-2.0
//
// Meter: the open sensors of this machine and the energy they tell between begin() and end(). One owner, one thread.
//
//   Result<Meter> meter = Meter::open({.root = root});
//   meter->prepare();                       // a few milliseconds: finds the counters' own steps
//   meter->begin();
//   ... meter->sample() every meter->period_ns() ...
//   meter->end();                           // waits for the next step of the counters, after the window
//   DomainTable table = meter->result();
//
// It can be used for one window after another. Between begin and end it holds constant memory, however long that is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/system_root.h"
#include "model/domain_table.h"
#include "model/energy_window.h"
#include "model/sensor_status.h"
#include "sensors/sensor.h"

namespace joulemap::sampling {

struct MeterOptions {
  SystemRoot root;
  std::string sensors;  // as --sensors takes them; empty for all
  std::string program;  // path of this executable, for remedies
};

class Meter {
 public:
  // Fails only for a sensor name that does not exist. A machine without sensors gives a meter without channels.
  static Result<Meter> open(const MeterOptions& options);

  std::span<const SensorStatus> sensors() const { return statuses_; }
  bool has_channels() const { return !channels_.empty(); }
  // When the next sample is due after this one: often enough that no counter can wrap twice in between, and
  // densely at the beginning, until the steps of every counter were seen.
  std::int64_t period_ns() const;

  void prepare();
  void begin();
  void sample();
  void end();

  std::int64_t begin_ns() const { return begin_ns_; }
  double elapsed_s() const;
  // CPU time this process spent between begin and end.
  double own_cpu_s() const;

  // Energy since the last call (or since begin), as read. A counter without a step since then has no value, "no-step".
  std::vector<DomainEnergy> interval(double elapsed_s);

  // Of the window that was ended, faults included.
  DomainTable result() const;

 private:
  Meter() = default;
  // Estimates follow from two readings, however far apart: /proc/stat is read once a second, in case the last read fails.
  enum class Which { measured, all };
  void read(Which which) noexcept;
  bool all_settled() const;
  void read_until_settled(std::int64_t deadline_ns, std::int64_t period_ns);
  std::int64_t slowest_refresh_ns() const;

  std::vector<SensorStatus> statuses_;
  std::vector<std::unique_ptr<sensors::Sensor>> sensors_;
  std::vector<Channel> channels_;  // of all sensors, in their order
  std::vector<Reading> readings_;
  std::vector<EnergyWindow> windows_;
  struct Mark {
    double joules = 0;
    std::uint64_t steps = 0;
  };
  std::vector<Mark> marks_;  // where each channel stood at the last interval
  std::vector<std::uint64_t> steps_at_begin_;
  std::int64_t last_full_read_ns_ = 0;
  bool check_estimates_ = false;  // --sensors names the estimate
  std::int64_t period_ns_ = 0;
  std::int64_t begin_ns_ = 0;
  std::int64_t end_ns_ = 0;
  std::int64_t own_cpu_at_begin_ns_ = 0;
  std::int64_t own_cpu_at_end_ns_ = 0;
};

}  // namespace joulemap::sampling

// SPDX-License-Identifier: Apache-2.0
//
// IdleMonitor: measures the idle machine: power, temperatures and the load of other processes. It measures the baseline
// before the rows and decides when a row may start. It opens the sensors and closes them on destruction, so that
// Joulemap does not read them while a row is recorded. One owner, main thread; watts, degrees Celsius, fractions from 0
// to 1.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/blocked_signals.h"
#include "base/result.h"
#include "experiment/plan/experiment_spec.h"
#include "experiment/run/row_json.h"
#include "sampling/meter.h"

namespace joulemap::experiment {

struct IdleState {
  std::vector<DomainEnergy> domain_powers;        // energy of each domain over the observed time
  std::map<std::string, double> temperatures_c;   // by sensor, last values
  std::optional<double> busy_share;               // busy fraction of the time of all CPUs
  std::optional<double> co_tenant_gpu_share;      // GPU time fraction of other processes; maximum over GPUs
  std::optional<std::uint64_t> throttle_reasons;  // NVML bits, OR over all GPUs

  std::optional<double> max_temperature_c() const;
};

class IdleMonitor {
 public:
  // `signals` must outlive the monitor.
  static Result<IdleMonitor> open(const sampling::SensorOptions& options, BlockedSignals& signals);

  std::span<const SensorStatus> sensors() const { return power_meter_.sensors(); }

  // Measures the machine for `seconds`, or until a signal requests a stop.
  IdleState measure_idle(double seconds);
  bool stop_requested() const { return stop_requested_; }

  // Waits until power and temperatures are near the baseline, at most spec.limit_s. Measures 0.5 s at a time; `state`
  // receives the last measurement.
  CoolDownOutcome cool_down(const IdleState& baseline, const CoolDownSpec& spec, IdleState& state);

 private:
  IdleMonitor(sampling::Meter meter, SystemRoot root, BlockedSignals& signals)
      : power_meter_(std::move(meter)), system_root_(std::move(root)), signals_(signals) {}
  void add_sample_to_state(const Sample& sample, IdleState& state) const;
  void wait_until(std::int64_t deadline_ns);

  sampling::Meter power_meter_;
  SystemRoot system_root_;
  BlockedSignals& signals_;
  bool stop_requested_ = false;
};

// Power of the domains that both states have, in W by provenance.
struct IdlePowers {
  PowerTotals current_w;
  PowerTotals baseline_w;
};
IdlePowers compare_idle_powers(const IdleState& state, const IdleState& baseline);

// Whether power and temperatures have returned to the baseline. Values missing from the baseline or the state are
// ignored.
bool has_cooled_down(const IdleState& state, const IdleState& baseline, const CoolDownSpec& spec);

}  // namespace joulemap::experiment

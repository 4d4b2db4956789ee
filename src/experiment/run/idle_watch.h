// SPDX-License-Identifier: Apache-2.0
//
// IdleWatch: measures the idle machine: power, temperatures and the load of other processes. It measures the baseline
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

#include "base/result.h"
#include "base/signal_gate.h"
#include "experiment/plan/experiment_spec.h"
#include "experiment/run/row_json.h"
#include "sampling/meter.h"

namespace joulemap::experiment {

struct IdleState {
  std::vector<DomainEnergy> domains;              // energy of each domain over the watch
  std::map<std::string, double> temperatures_c;   // by sensor, last values
  std::optional<double> busy_share;               // fraction of all CPUs
  std::optional<double> co_tenant_gpu_share;      // GPU time fraction of other processes; maximum over GPUs
  std::optional<std::uint64_t> throttle_reasons;  // NVML bits, OR over all GPUs

  std::optional<double> hottest_c() const;
};

class IdleWatch {
 public:
  // `signals` outlives it.
  static Result<IdleWatch> open(const sampling::SensorOptions& options, SignalGate& signals);

  std::span<const SensorStatus> sensors() const { return meter_.sensors(); }

  // Watches for `seconds`, or until a stop request.
  IdleState watch(double seconds);
  bool asked_to_stop() const { return asked_to_stop_; }

  // Waits until power and temperatures are near the baseline, in watches of 0.5 s. `state` receives the last watch.
  CoolDownOutcome cool_down(const IdleState& baseline, const CoolDownSpec& spec, IdleState& state);

 private:
  IdleWatch(sampling::Meter meter, SystemRoot root, SignalGate& signals)
      : meter_(std::move(meter)), root_(std::move(root)), signals_(signals) {}
  void take(const Sample& sample, IdleState& state) const;
  void wait_until(std::int64_t deadline_ns);

  sampling::Meter meter_;
  SystemRoot root_;
  SignalGate& signals_;
  bool asked_to_stop_ = false;
};

// Power of the domains that both states have, by provenance.
struct IdlePowers {
  PowerTotals now;
  PowerTotals baseline;
};
IdlePowers idle_powers(const IdleState& state, const IdleState& baseline);

// Whether power and temperatures have returned to the baseline. Values missing from the baseline or the state are
// ignored.
bool is_cool(const IdleState& state, const IdleState& baseline, const CoolDownSpec& spec);

}  // namespace joulemap::experiment

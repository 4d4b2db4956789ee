// SPDX-License-Identifier: Apache-2.0
//
// IdleWatch: looks at the machine while nothing of ours runs: what it draws, how warm it is, what others do on it. Gives the
// baseline before the rows, and tells when a row may begin. Opens the sensors and closes them with itself, so that nothing
// of ours reads them while a row is recorded. One owner, main thread; watts, degrees Celsius, shares from 0 to 1.
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
  std::vector<DomainEnergy> domains;              // what each domain used meanwhile
  std::map<std::string, double> temperatures_c;   // by sensor, the last values
  std::optional<double> busy_share;               // of all CPUs
  std::optional<double> others_on_gpu;            // share of the time, of the GPU where it is the most
  std::optional<std::uint64_t> throttle_reasons;  // of any GPU; bits of NVML

  std::optional<double> hottest_c() const;
};

class IdleWatch {
 public:
  // `signals` outlives it.
  static Result<IdleWatch> open(const sampling::SensorOptions& options, SignalGate& signals);

  std::span<const SensorStatus> sensors() const { return meter_.sensors(); }

  // For so long, or until somebody asks us to stop.
  IdleState watch(double seconds);
  bool asked_to_stop() const { return asked_to_stop_; }

  // Until power and temperatures are near the baseline's, in looks of half a second. `state` is the last look.
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

// Power of the domains that both have, by provenance.
struct IdlePowers {
  PowerTotals now;
  PowerTotals baseline;
};
IdlePowers idle_powers(const IdleState& state, const IdleState& baseline);

// Whether nothing is left of what ran before. What the baseline or the state does not tell cannot be waited for.
bool is_cool(const IdleState& state, const IdleState& baseline, const CoolDownSpec& spec);

}  // namespace joulemap::experiment

// SPDX-License-Identifier: Apache-2.0
//
// The ledgers of all machines of a recording, in three stages. Each stage consumes the one before it, so that no pass
// can be skipped or repeated:
//
//   HostTotals          second pass over the recording: sums of what ran
//     .attribute(...)   -> HostAttribution    third pass: attributes energy to it
//     .finish()         -> HostLedgers        the results
//
// Pure. `priors` must outlive all stages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attribution/ledger/machines.h"

namespace joulemap::attribution {

class HostLedgers {
 public:
  // Call once for each level of Machines::RequestedResults.
  LedgerResult ledger(RowLevel level, const BranchSumOptions& grouping = {}) {
    return machines_->finish(level, grouping);
  }
  // One view for each machine.
  std::vector<MachineView> views(const ViewLimits& limits) const { return machines_->views(limits); }

 private:
  friend class HostAttribution;
  explicit HostLedgers(std::unique_ptr<Machines> machines) : machines_(std::move(machines)) {}
  std::unique_ptr<Machines> machines_;
};

class HostAttribution {
 public:
  void add(std::uint32_t source, const Activity& activity) { machines_->add(source, activity); }
  void add(std::uint32_t source, const EngineSteps& steps) { machines_->add(source, steps); }
  HostLedgers finish() && { return HostLedgers(std::move(machines_)); }

  // The kernel powers found on the GPUs of all machines.
  std::vector<KernelPower> learned_kernel_powers(const std::string& default_gpu_model) const {
    return machines_->learned_kernel_powers(default_gpu_model);
  }
  std::optional<ProbeCost> probe_cost() const { return machines_->probe_cost(); }
  // Seconds by which dithering delayed programs, on the machine with the most; empty without dithering.
  std::optional<double> dither_s() const { return machines_->dither_s(); }

 private:
  friend class HostTotals;
  explicit HostAttribution(std::unique_ptr<Machines> machines) : machines_(std::move(machines)) {}
  std::unique_ptr<Machines> machines_;
};

// Energy that the recorder `source` measured.
struct HostEnergy {
  std::uint32_t source = 0;
  RecordedEnergy::Result energy;
  std::string prefix = {};  // of the names of its domains
};

class HostTotals {
 public:
  HostTotals(const std::vector<SurveyedSource>& sources, Machines::RequestedResults requested, AttributionMode mode,
             const KernelPriors& priors)
      : machines_(std::make_unique<Machines>(sources, std::move(requested), mode, priors)) {}

  void add(std::uint32_t source, const Activity& activity) { machines_->add_to_activity_sums(source, activity); }
  void add(std::uint32_t source, const Mark& mark) { machines_->add_mark(source, mark); }
  void add(std::uint32_t source, const EngineSteps& steps) { machines_->observe_engine_steps(source, steps); }
  // Moves readings and CPU times out of `energies`; tables and curves stay there.
  HostAttribution attribute_energies(std::vector<HostEnergy>& energies) && {
    for (HostEnergy& host_energy : energies)
      machines_->set_recorded_energy(host_energy.source, host_energy.energy, host_energy.prefix);
    return HostAttribution(std::move(machines_));
  }

 private:
  std::unique_ptr<Machines> machines_;
};

}  // namespace joulemap::attribution

// SPDX-License-Identifier: Apache-2.0
//
// MachineViewBuilder: the timeline of one machine, for pages and plots: which phase ran most at each moment, and how
// the energy of each layer varies from step to step. Part of the third pass over a recording, next to the ledgers.
// Memory grows with layers and individually recorded steps. Pure; joules, CLOCK_MONOTONIC of that machine.
//
// On a GPU, the energy of a layer in a step is the sum over its kernels, each at its own time, by the power of its
// class. For CPUs a recording contains only sums over intervals of at most a second: there it is the mean over the
// calls of a layer, or for phases over the steps that begin in the interval.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attribution/analysis/step_details.h"
#include "attribution/cpu/cpu_attribution.h"
#include "attribution/gpu/gpu_attribution.h"
#include "attribution/ledger/activity_sums.h"
#include "attribution/ledger/machine_energy.h"
#include "attribution/ledger/step_rows.h"
#include "attribution/ledger/time_curve.h"
#include "base/hash.h"
#include "model/activity.h"
#include "model/run_view.h"

namespace joulemap::attribution {

struct NamedPhaseSpan {
  std::string name;
  TimeSpan span;
};

// What one machine adds to a RunView.
struct MachineView {
  TimeSpan span;
  std::vector<StepOrEpochEnergy> steps = {};  // of the process with the most steps
  std::vector<StepOrEpochEnergy> epochs = {};
  std::vector<TimeSpan> probing = {};
  std::vector<TimeSpan> dithering = {};
  std::vector<NamedPhaseSpan> phases = {};
  std::vector<LayerDistribution> layer_distributions = {};
  std::vector<StepDetail> step_details = {};
  std::uint64_t steps_with_kernel_records = 0;  // steps with kernel records
};

class MachineViewBuilder {
 public:
  // `energy` and `sums` are finished and must outlive the MachineViewBuilder. `steps_ns`: begins of steps, sorted.
  MachineViewBuilder(TimeSpan span, const MachineEnergy& energy, ActivitySums& sums,
                     DistributionLevel level = DistributionLevel::layer, std::vector<std::int64_t> steps_ns = {});

  void add(std::uint32_t process, const Activity& activity);

  // Sorted by time, without overlap. From kernels if any were recorded individually, else from CPU time.
  std::vector<NamedPhaseSpan> phases() const;
  // The layers with the most energy.
  std::vector<LayerDistribution> layer_distributions(const ViewLimits& limits) const;
  // Single steps of the process with the most of them.
  std::vector<StepDetail> step_details();
  std::uint64_t count_steps_with_kernels() const;

 private:
  struct EnergySample {  // energy of a layer in a step, or per call in an interval
    float energy_j = 0;
    std::uint32_t begin_ms = 0;  // ms since the command began
    std::int64_t step = -1;      // number of the step, on a GPU; -1 on CPUs
  };
  struct EnergySamples {
    std::vector<EnergySample> finished_samples;
    double sum_j = 0;             // on CPUs: energy of all intervals with a sample
    double current_sample_j = 0;  // energy so far in the current step or interval
    std::uint64_t step = 0;       // serial number of the current step; 0: none yet
    EnergySample current_sample;

    void finish_sample(double energy_j) {
      finished_samples.push_back(current_sample);
      finished_samples.back().energy_j = static_cast<float>(energy_j);
    }
  };
  using PhaseCurves = std::map<std::string, TimeCurve>;
  // Values common to all kernels with the same KernelKey.
  struct KernelAccumulators {
    std::string device;
    GpuAttribution::KernelWeightByDuration weight;
    TimeCurve* phase = nullptr;
    EnergySamples* layer = nullptr;  // null: none
    const LayerKey* layer_key = nullptr;
  };
  struct ScopeAccumulators {
    TimeCurve* phase = nullptr;
    EnergySamples* layer = nullptr;
    bool is_layer_scope = false;  // the layer itself, not an operation or function in it
  };
  using KernelKey = std::array<std::uint32_t, 4>;  // process, class, queue, scope
  struct KernelKeyHash {
    std::size_t operator()(const KernelKey& key) const {
      std::uint64_t hash = 0;
      for (const std::uint32_t part : key) hash = (hash ^ part) * kGoldenRatio64;
      return hash ^ hash >> 32;
    }
  };

  KernelAccumulators& find_or_add_kernel_accumulators(std::uint32_t process, const Kernel& kernel);
  ScopeAccumulators& find_or_add_scope_accumulators(std::uint32_t process, std::uint32_t scope);
  void add_kernels(std::uint32_t process, const Activity& activity);
  void add_step_details(std::uint32_t process, const Activity& activity, std::span<const std::uint64_t> steps,
                        std::uint64_t first_step_index);
  void add_waits(std::uint32_t process, const Activity& activity);
  double kernel_energy_j(const KernelAccumulators& accumulators, const Kernel& kernel) const;
  const StepDetails* find_details_with_most_steps() const;
  StepDetail make_step_detail(const CollectedStep& step);
  std::vector<StepWait> estimate_step_gpu_waits(const std::string& device, double idle_s, TimeSpan span);
  void add_scope_energies(std::uint32_t process, const Activity& activity);
  std::uint32_t ms_since_begin(std::int64_t time_ns) const;
  static LayerDistribution make_layer_distribution(const LayerKey& layer, std::string_view sample_unit,
                                                   const EnergySamples& samples, std::size_t max_points);
  std::vector<std::string> distribution_row_path(const ResolvedScope& resolved_scope) const;
  std::uint64_t count_steps_between(std::int64_t begin_ns, std::int64_t end_ns) const;
  TimeCurve* find_phase_curve(PhaseCurves& curves, const ResolvedScope& resolved_scope) const;

  TimeSpan span_;
  const MachineEnergy& machine_energy_;
  ActivitySums& activity_sums_;
  GpuAttribution gpu_attribution_;
  CpuAttribution cpu_attribution_;
  DistributionLevel distribution_level_;
  std::vector<std::int64_t> step_begins_ns_;
  PhaseCurves gpu_phases_;
  PhaseCurves cpu_phases_;
  std::map<LayerKey, EnergySamples> gpu_layers_;
  std::map<LayerKey, EnergySamples> cpu_layers_;
  std::unordered_map<KernelKey, KernelAccumulators, KernelKeyHash> kernel_accumulators_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, ScopeAccumulators> scope_accumulators_;
  std::uint64_t step_count_ = 0;
  std::map<std::uint32_t, StepDetails> step_details_;                      // by process
  std::map<std::pair<std::string, IdleCause>, TimeCurve> waits_by_cause_;  // recorded waiting time of each device
};

}  // namespace joulemap::attribution

// SPDX-License-Identifier: Apache-2.0
//
// HostView: what happened when on one machine, for pages and plots: which phase ran most at each moment, and how the energy
// of each layer differs from step to step. Takes the third look at a recording beside the ledgers. Memory grows with
// layers and steps that were kept one by one. Pure; joules, CLOCK_MONOTONIC of that machine.
//
// On a GPU the energy of a layer in a step is that of its single kernels, each at its moment, by the power of its
// class. On CPUs a recording has only sums over time, a second or less each: there it is the mean over the calls of a
// layer, or over the steps that begin in that time where phases are asked for.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attribution/cpu/cpu_shares.h"
#include "attribution/gpu/gpu_shares.h"
#include "attribution/ledger/activity_sums.h"
#include "attribution/ledger/machine_energy.h"
#include "attribution/ledger/step_rows.h"
#include "attribution/ledger/time_curve.h"
#include "model/activity.h"
#include "model/run_view.h"

namespace joulemap::attribution {

struct PhaseSpan {
  std::string name;
  TimeSpan span;
};

// What one machine adds to a RunView.
struct MachineView {
  TimeSpan span;
  std::vector<NumberedEnergy> steps = {};  // of the process that told the most
  std::vector<NumberedEnergy> epochs = {};
  std::vector<TimeSpan> probing = {};
  std::vector<TimeSpan> dithering = {};
  std::vector<PhaseSpan> phases = {};
  std::vector<LayerSpread> spreads = {};
};

class HostView {
 public:
  // `energy` and `sums` are finished and outlive it.
  // `steps_ns`: when steps began, in order.
  HostView(TimeSpan span, const MachineEnergy& energy, ActivitySums& sums, SpreadLevel level = SpreadLevel::layer,
           std::vector<std::int64_t> steps_ns = {});

  void add(std::uint32_t process, const Activity& activity);

  // In order of time, none overlapping. Of kernels where any were told one by one, else of CPU time.
  std::vector<PhaseSpan> phases() const;
  // Those that drew the most in all.
  std::vector<LayerSpread> spreads(const ViewLimits& limits) const;

 private:
  struct Sample {  // of a step or stretch
    float energy_j = 0;
    std::uint32_t begin_ms = 0;  // since the command began
    std::int64_t step = -1;      // its number, on a GPU; -1: none
  };
  struct Samples {
    std::vector<Sample> closed;
    double sum_j = 0;        // on CPUs: of all
    double open_j = 0;       // of the step or stretch that is being added up
    std::uint64_t step = 0;  // its serial number; 0: none yet
    Sample open;

    void close(double energy_j) {
      closed.push_back(open);
      closed.back().energy_j = static_cast<float>(energy_j);
    }
  };
  using Layer = std::pair<std::vector<std::string>, std::string>;  // path, device
  using PhaseCurves = std::map<std::string, TimeCurve>;
  // What is the same for all kernels of a class at a place.
  struct KernelMeaning {
    std::string device;
    double weight = 0;
    TimeCurve* phase = nullptr;
    Samples* layer = nullptr;  // nothing: of none
  };
  struct PlaceHere {
    TimeCurve* phase = nullptr;
    Samples* layer = nullptr;
    bool is_layer = false;  // itself, and no operation or function within it
  };
  using KernelKey = std::array<std::uint32_t, 4>;  // process, class, queue, place
  struct KeyHash {
    std::size_t operator()(const KernelKey& key) const {
      std::uint64_t hash = 0;
      for (const std::uint32_t part : key) hash = (hash ^ part) * 0x9E3779B97F4A7C15u;
      return hash ^ hash >> 32;
    }
  };

  KernelMeaning& meaning_of(std::uint32_t process, const Kernel& kernel);
  PlaceHere& place_of(std::uint32_t process, std::uint32_t place);
  void add_kernels(std::uint32_t process, const Activity& activity);
  void add_places(std::uint32_t process, const Activity& activity);
  std::uint32_t milliseconds_at(std::int64_t time_ns) const;
  static LayerSpread spread_of(const Layer& layer, std::string_view per, const Samples& samples,
                               std::size_t most_points);
  std::vector<std::string> spread_path(const PlaceMeaning& meaning) const;
  std::uint64_t steps_between(std::int64_t begin_ns, std::int64_t end_ns) const;
  TimeCurve* curve_of(PhaseCurves& curves, const PlaceMeaning& meaning) const;

  TimeSpan span_;
  const MachineEnergy& energy_;
  ActivitySums& sums_;
  GpuShares gpu_shares_;
  CpuShares cpu_shares_;
  SpreadLevel level_;
  std::vector<std::int64_t> steps_ns_;
  PhaseCurves gpu_phases_;
  PhaseCurves cpu_phases_;
  std::map<Layer, Samples> gpu_layers_;
  std::map<Layer, Samples> cpu_layers_;
  std::unordered_map<KernelKey, KernelMeaning, KeyHash> kernel_meanings_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, PlaceHere> places_;
  std::uint64_t steps_seen_ = 0;
};

}  // namespace joulemap::attribution

// SPDX-License-Identifier: Apache-2.0
//
// MachineEnergy: what one machine drew when, and what is known of the powers of its GPUs' kernels: all that a ledger needs
// besides what ran. Plain data; curves are finished. Joules, seconds, CLOCK_MONOTONIC.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/cpu/cpu_powers.h"
#include "attribution/gpu/gpu_work.h"
#include "attribution/gpu/kernel_priors.h"
#include "attribution/gpu/power_regression.h"
#include "attribution/ledger/time_curve.h"
#include "energy/energy_curve.h"

namespace joulemap::attribution {

// How a GPU's energy is shared out among what ran.
enum class Mode : std::uint8_t {
  regress,   // by what each class of kernels draws, where that can be found out; else as integral
  integral,  // by time
  hold,      // by time, at the power that the sensor showed last: what others do, to compare with
};
std::optional<Mode> mode_named(std::string_view name);

// Powers of the classes of kernels of one GPU.
struct GpuPowers {
  PowerFit fit;
  ColumnOf column_of;
  TimeCurve modelled_j;                                // what the sums of kernels would draw, without idling
  std::vector<std::vector<SeenKernels>> kernels = {};  // by column
  std::optional<std::uint16_t> others = {};            // the column of what is not the command's
  UsualLengths usual_ns = {};
};

struct MachineEnergy {
  std::optional<TimeCurve> cpu_j;  // of all counted domains but GPUs
  struct Gpu {
    std::string domain;
    TimeCurve energy_j;
    std::optional<GpuPowers> powers = {};    // nothing: all draw alike
    std::string model = {};                  // "NVIDIA H200"; empty where not known
    double power_limited = 0;                // share of the time in which it was held at its power limit
    std::optional<TimeCurve> others_s = {};  // how long others kept it busy; nothing: nobody did
  };
  std::map<std::string, Gpu> gpus;         // by UUID, and by "ordinal N"
  std::optional<TimeCurve> machine_cpu_s;  // what all processes used
  std::optional<double> command_cpu_s;     // what the command's used
  bool samples_calls = true;               // operations were told in some steps only; else in all
  bool tells_idle = true;                  // what is in no tally was idle; else nobody knows: a trace of another tool
  std::optional<CpuKnowledge> cpu = {};    // nothing: all draw alike, and how sure that is is not known
};

// The powers of a GPU's classes, from what its sensors said and what ran. All alike where they said too little.
GpuPowers find_powers(DeviceWork work, const PowerEvidence& evidence, TimeSpan span,
                      std::span<const ClassPrior> priors = {});

// The energy of a counter that lags by `lag_ns`, in the cells of `like` and brought to the same sum. `like` itself where the
// counter's updates are not known.
TimeCurve curve_between(const EnergyCurve& curve, std::int64_t lag_ns, const TimeCurve& like);
// The same if each moment used what the update before it showed.
TimeCurve held_curve(std::span<const EnergyPoint> steps, const TimeCurve& like);

}  // namespace joulemap::attribution

// SPDX-License-Identifier: Apache-2.0
//
// MachineEnergy: the energy of one machine over time, and the kernel powers found for its GPUs: all that a ledger needs
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

// How the energy of a GPU is attributed to what ran.
enum class AttributionMode : std::uint8_t {
  regress,          // by the power of each kernel class; by time where powers are unknown
  integral,         // by time
  sample_and_hold,  // by time, at the power of the last counter update: what other tools do, for comparison
};
std::optional<AttributionMode> parse_attribution_mode(std::string_view name);

// Powers of the kernel classes of one GPU.
struct GpuPowers {
  PowerFit power_fit;
  ClassColumns class_columns;
  TimeCurve modelled_j;                                              // J predicted while kernels run, without idle time
  std::vector<std::vector<ObservedKernels>> kernels_by_column = {};  // by column
  std::optional<std::uint16_t> co_tenant_column = {};                // the column of other processes
  FullSpeedDurations full_speed_ns = {};
};

// Time in which a device was idle, and its energy meanwhile.
struct IdleAmount {
  double time_s = 0;
  double energy_j = 0;
  double program_time_s = 0;  // the parts outside of MachineEnergy::spans_outside_program
  double program_energy_j = 0;

  void add(const IdleAmount& amount, double factor = 1) {
    time_s += factor * amount.time_s;
    energy_j += factor * amount.energy_j;
    program_time_s += factor * amount.program_time_s;
    program_energy_j += factor * amount.program_energy_j;
  }
};

struct MachineEnergy {
  std::optional<TimeCurve> cpu_energy_j;  // sum of all counted domains except GPUs
  struct Gpu {
    std::string domain_name;
    TimeCurve energy_j;
    std::optional<GpuPowers> powers = {};       // empty: all classes have equal power
    std::string device_model = {};              // "NVIDIA H200"; empty if unknown
    double power_limited_fraction = 0;          // fraction of the time at the power limit
    std::optional<TimeCurve> co_tenant_s = {};  // s in which co-tenants kept it busy; empty: none
  };
  std::map<std::string, Gpu> gpus;  // by UUID, and by "ordinal N"
  // A GPU that is not in `gpus`.
  struct UncountedGpu {
    std::string domain_name;
    bool is_excluded = false;  // by the user; else its sensors returned no value
  };
  std::map<std::string, UncountedGpu> uncounted_gpus;  // by UUID, and by "ordinal N"
  std::optional<TimeCurve> machine_cpu_s;              // used by all processes
  std::optional<double> command_cpu_s;                 // used by the command's processes
  bool has_sampled_operations = true;                  // operations were recorded in sampled steps only; else in all
  bool has_idle_time = true;                           // time without a tally was idle; else unknown: an imported trace
  std::optional<CpuAttributionInputs> cpu_inputs = {};  // empty: equal powers, of unknown uncertainty
  // Probing, and what follows the examined steps: idle energy in these spans is not of the program. They do not overlap.
  std::vector<TimeSpan> spans_outside_program = {};

  // Seconds of these spans between two times.
  double time_outside_program_s(std::int64_t from_ns, std::int64_t to_ns) const;
  // The domain of a GPU; `device` itself if no sensor of it was recorded.
  std::string gpu_domain_name(const std::string& device) const;
  // The amount of a curve between two times, without these spans.
  double program_amount_between(const TimeCurve& curve, std::int64_t from_ns, std::int64_t to_ns) const;
};

// Finds the powers of a GPU's kernel classes from its sensor values and what ran. Without `priors`, uses the powers of
// usual_kernel_powers.h as priors if active-idle power is known. If the values do not suffice for a fit, returns the
// prior powers, or equal powers without priors.
GpuPowers find_kernel_powers(DeviceWork work, const PowerEvidence& evidence, TimeSpan span,
                             std::span<const KernelClassPrior> priors = {});

// The energy of a counter that lags by `lag_ns`, in the cells of `grid` and scaled to the same sum. Returns `grid`
// itself if the counter's updates are unknown.
TimeCurve lag_corrected_curve(const EnergyCurve& curve, std::int64_t lag_ns, const TimeCurve& grid);
// The energy of a counter whose power over time is unknown between its updates: within each interval it follows the
// modelled power, scaled by one factor to the measured energy. `busy_s`: time in which kernels ran, in the same cells.
// Returns `grid` if there are fewer than two updates.
TimeCurve modelled_energy_curve(std::span<const EnergyPoint> counter_updates, std::int64_t lag_ns,
                                const GpuPowers& powers, const TimeCurve& busy_s, const TimeCurve& grid);
// The energy if each moment had the mean power between the two counter updates before it. Returns `grid` if there are
// fewer than three updates.
TimeCurve sample_and_hold_curve(std::span<const EnergyPoint> counter_updates, const TimeCurve& grid);

}  // namespace joulemap::attribution

// SPDX-License-Identifier: Apache-2.0
//
// Machines: state of the attribution of all machines of a recording. Each machine has one recorder, whose samples give
// the energy, and any number of processes, which record what ran; the boot id of the machine links them. Only the
// classes of host_ledgers.h use it, which call its functions in the order of the passes. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "attribution/analysis/host_view.h"
#include "attribution/analysis/recording_survey.h"
#include "attribution/cpu/cpu_use.h"
#include "attribution/gpu/gpu_work.h"
#include "attribution/gpu/probe_spans.h"
#include "attribution/ledger/activity_sums.h"
#include "attribution/ledger/ledger.h"
#include "attribution/ledger/recorded_energy.h"
#include "attribution/ledger/step_rows.h"
#include "attribution/requests/serving_ledger.h"

namespace joulemap::attribution {

class Machines {
 public:
  struct RequestedResults {
    std::vector<RowLevel> levels;                 // at least one
    std::optional<DistributionLevel> views = {};  // also build HostViews, with distributions at this level
    std::optional<double> program_end_s = {};     // since the begin of the analysed time; none: its end
  };
  // `priors` must outlive the Machines.
  Machines(const std::vector<SurveyedSource>& sources, RequestedResults requested, AttributionMode mode,
           const KernelPriors& priors);

  // Second pass.
  void add_to_activity_sums(std::uint32_t source, const Activity& activity);
  void add_mark(std::uint32_t source, const Mark& mark);
  void observe_engine_steps(std::uint32_t source, const EngineSteps& steps);
  // After the second pass: the energy of the recorder `source`. `prefix` precedes the names of its domains.
  void set_recorded_energy(std::uint32_t source, RecordedEnergy::Result& energy, const std::string& prefix);
  // Third pass.
  void add(std::uint32_t source, const Activity& activity);
  void add(std::uint32_t source, const EngineSteps& steps);

  // After the third pass, once for each wanted level.
  LedgerResult finish(RowLevel level, const BranchSumOptions& grouping = {});
  // After the third pass: one view for each machine.
  std::vector<MachineView> views(const ViewLimits& limits);
  // After set_recorded_energy(): the kernel powers found on the GPUs of all machines.
  std::vector<KernelPower> learned_kernel_powers(const std::string& default_gpu_model) const;
  bool has_activity() const;
  // After set_recorded_energy(): time and energy of probing; empty if no process was probed.
  std::optional<ProbeCost> probe_cost() const;
  // Seconds by which dithering delayed programs, on the machine with the most; empty without dithering.
  std::optional<double> dither_s() const;

 private:
  struct Host {
    std::string boot_id;
    TimeSpan span;
    double cpu_count = std::numeric_limits<double>::infinity();
    ActivitySums activity_sums;
    GpuWorkCollector gpu_work;
    ProbeSpans probing_spans;
    ProbeSpans dithering_spans;
    std::vector<Channel> channels;
    std::vector<ChannelCalibration> calibration;
    CpuWorkCollector cpu_work;
    MachineEnergy energy;
    std::vector<EnergyCurve> gpu_energy_curves;                        // of all counted domains
    std::map<std::uint32_t, std::vector<StepOrEpochMark>> step_marks;  // by process
    std::map<std::uint32_t, std::vector<EvaluationMark>> evaluation_marks;
    std::map<std::uint32_t, std::vector<StepOrEpochMark>> epoch_marks;
    std::vector<std::pair<std::uint32_t, Mark>> lost_kernel_marks;  // marks of kind kernels_lost, with their process
    std::map<std::string, TimeCurve> co_tenant_s;                   // by device: time in which co-tenants kept it busy
    std::string prefix;                                             // of the names of its devices
    std::map<RowLevel, Ledger> ledgers;
    std::optional<MachineViewBuilder> view;
    ServingLedger serving;
    std::optional<ServingResult> serving_result;

    Host(std::string boot, TimeSpan command)
        : boot_id(std::move(boot)),
          span(command),
          activity_sums(command),
          gpu_work(command),
          probing_spans(command),
          dithering_spans(command, kDitherRegionName),
          cpu_work(command),
          serving(command) {}
  };

  Host* find_or_add_host(std::uint32_t source);
  void for_each_clipped_activity(Host& host, std::uint32_t source, const Activity& activity,
                                 const std::function<void(const Activity&)>& activity_callback);
  void add_clipped_activity_sums(Host& host, std::uint32_t source, const Activity& activity) const;
  bool has_attributed_level() const;
  bool needs_kernel_powers() const { return attribution_mode_ == AttributionMode::regress && has_attributed_level(); }
  void add_lost_kernels(Host& host);
  static void find_uncounted_gpus(Host& host);
  void add_co_tenants(Host& host, const RecordedEnergy::Result& energy) const;
  struct PrefixedDevice {
    const std::string& prefix;  // of the name of its domain
    const std::string& device;
  };
  MachineEnergy::Gpu make_gpu_energy(const Host& host, const RecordedEnergy::Result::DomainCurve& curve,
                                     DeviceWork* work, const PrefixedDevice& name) const;
  CpuAttributionInputs cpu_attribution_inputs(Host& host, RecordedEnergy::Result& energy) const;
  std::vector<TimeSpan> find_spans_outside_program(const Host& host) const;
  static EnergyFunction make_host_energy_function(const Host& host);
  static StepOrEpochMarks find_step_or_epoch_marks(const Host& host, RowLevel level);
  static std::vector<StepOrEpochMark> sorted_step_marks(const Host& host, std::uint32_t process);
  static std::vector<StepOrEpochEnergy> compute_step_or_epoch_energies(const Host& host, RowLevel level);
  void add_omitted_steps_diagnostic(const Host& host, RowLevel level, Diagnostics& diagnostics) const;
  static void fit_serving_model(Host& host, const RecordedEnergy::Result& energy);
  static LedgerResult make_serving_rows(Host& host, RowLevel level);
  LedgerResult make_host_result(Host& host, RowLevel level, const BranchSumOptions& grouping) const;

  RequestedResults requested_results_;
  AttributionMode attribution_mode_;
  const KernelPriors& priors_;
  std::vector<std::string> boot_ids_;                      // by source
  std::vector<std::int64_t> start_times_ns_;               // by source
  std::set<std::uint32_t> ranks_;                          // processes of distributed runs, which share their steps
  std::map<std::uint32_t, Host> hosts_;                    // by recorder
  std::map<std::uint32_t, TracedSteps> light_mode_steps_;  // by process; only for reports of a part of a run
};

}  // namespace joulemap::attribution

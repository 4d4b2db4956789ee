// SPDX-License-Identifier: Apache-2.0
//
// RunView: the content of pages, plots and exports of one run: the rows of all levels, and what happened over time.
// Plain data, with a size limited by ViewLimits; attribution/analysis/run_view_builder.h builds it. Joules, watts;
// times are seconds since the start of the command. Unknown values are none, never 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/advice.h"
#include "model/diagnostics.h"
#include "model/idle_cause.h"
#include "model/report_result.h"
#include "model/run_rates.h"

namespace joulemap {

// The rows of `report --by <by>`, the largest first.
struct LevelView {
  std::string by;
  std::vector<ReportRow> rows;
  std::vector<ReportRow> groups;  // as in ReportResult; only on request
  std::optional<double> attributed_j;
  std::optional<double> idle_j;
  std::optional<double> unattributed_j;
  std::vector<IdleEntry> idle;  // see ReportResult::idle
  Diagnostics diagnostics;      // of this level; those of the run are in RunView::run
};

// An interval with a name. When there are too many, neighbours with the same name are merged into one; `count` is their
// number.
struct NamedTimeSpan {
  std::string name;
  double begin_s = 0;
  double end_s = 0;
  std::uint64_t count = 1;
};

// A step or an epoch, or several that were merged into one because there are too many; then time_s and energy_j are
// sums. energy_j is the energy of the whole machine, excluding probing.
struct StepOrEpochView {
  std::uint64_t number = 0;  // of the first one, if several are merged
  std::uint64_t count = 1;   // number of merged steps or epochs
  double begin_s = 0;
  double end_s = 0;
  double time_s = 0;  // without probing
  std::optional<double> energy_j;
  std::optional<double> loss;  // mean of the values reported between begin_s and end_s
  // energy_j per unit by which the loss fell since the previous step or epoch with a loss; none when it did not fall.
  std::optional<double> joules_per_loss;
};

struct MetricPoint {
  double time_s = 0;
  std::optional<std::int64_t> step;
  double value = 0;
};

struct MetricSeries {
  std::string name;
  std::uint64_t count = 0;          // number of reported values
  std::vector<MetricPoint> points;  // every n-th value, so that there are at most ViewLimits::metric_points
};

// Energy of a layer or phase in one step, or per call or step as a mean over an interval.
struct LayerEnergyPoint {
  double time_s = 0;  // begin of the step or interval
  double energy_j = 0;
  std::optional<std::int64_t> step;  // number of the step that launched the kernels; none on CPUs
};

// Level whose distributions a RunView contains.
enum class DistributionLevel : unsigned char { layer, phase };

// Distribution of the energy of a layer or phase over the steps or intervals of the run.
struct LayerDistribution {
  std::vector<std::string> path;  // same as in the rows of that level
  std::string device;
  // On a GPU "step": a sample is the energy of the layer's kernels in one step. On CPUs a sample is a mean over an
  // interval of up to a second: "call": energy per call of a layer; "step": energy per step of a phase.
  std::string per;
  std::uint64_t samples = 0;
  double mean_j = 0;
  std::vector<double> quantiles_j;       // P0, P1 ... P100: kDistributionQuantileCount values
  std::vector<LayerEnergyPoint> points;  // every n-th sample in order of time; empty if ViewLimits::layer_points is 0
};
inline constexpr std::size_t kDistributionQuantileCount = 101;

// Limits of RunView::step_details: of the steps with kernel records, it contains evenly spaced ones and the longest
// ones, with at most kMaxStepLayers layers each.
inline constexpr std::size_t kMaxEvenlySpacedStepDetails = 160;
inline constexpr std::size_t kMaxLongStepDetails = 20;
inline constexpr std::size_t kMaxStepLayers = 12;

// Time and energy of the kernels that a layer launched in one step.
struct StepLayer {
  std::vector<std::string> path;  // same as in the rows by layer
  std::string device;
  double time_s = 0;
  double energy_j = 0;
};

// Idle time of a GPU between the kernels of one step, with one cause. Causes are recorded for intervals of up to a
// second; the idle time of a step is split among them in the proportions of its interval.
struct StepWait {
  IdleCause cause = IdleCause::unknown;
  std::string device;
  double time_s = 0;
  std::optional<double> energy_j;
};

// GPU work of one step, from its kernel records.
struct StepDetail {
  std::uint64_t number = 0;
  double begin_s = 0;      // when the measured program began the step
  double gpu_begin_s = 0;  // start of its first kernel
  double gpu_end_s = 0;    // start of the first kernel of the next step, or else end of its last kernel
  std::uint64_t kernels = 0;
  std::vector<StepLayer> layers;   // largest first, at most kMaxStepLayers
  std::uint64_t other_layers = 0;  // number of layers that are not in `layers`
  double other_s = 0;              // time and energy of these layers, and of kernels outside of layers
  double other_layers_j = 0;
  std::vector<StepWait> waits;  // longest first
};

// Energy of a component of the machine: sum of its counted domains.
struct ComponentEnergy {
  std::string name;  // "GPU", "CPU", "memory", "platform", "other"
  EnergyTotals totals;
};

// Size limits of a RunView. Beyond them, neighbours are merged or only every n-th value is kept.
struct ViewLimits {
  std::size_t slices = 1200;               // values of each power series and track
  std::size_t max_steps_or_epochs = 2000;  // entries of `steps`, and of `epochs`
  std::size_t metric_points = 2000;        // points of each metric
  std::size_t distributions = 40;
  std::size_t layer_points = 0;  // points of each LayerDistribution; 0: none
  DistributionLevel distribution_level = DistributionLevel::layer;
};

struct RunView {
  // The result of `report --by domain`: domains, totals, overhead, diagnostics. Its power and tracks are means over
  // slices of `slice_s`, at most ViewLimits::slices, so that sums over slices preserve the energy.
  ReportResult run;
  RunRates rates;  // per step, epoch and sample of the analysed time
  std::vector<ComponentEnergy> components;
  std::vector<LevelView>
      levels;  // phase, layer, module, op, tensor, function, region, kernel, stack; only levels with rows

  // Steps and epochs of the machine with the most steps; merged beyond ViewLimits::max_steps_or_epochs.
  std::vector<StepOrEpochView> steps;
  std::vector<StepOrEpochView> epochs;
  std::vector<StepDetail> step_details;  // in order of time
  std::uint64_t detailed_steps = 0;      // number of steps with kernel records; step_details contains some of them
  // The phase with the most time at each moment: of GPU kernels when there are kernel records, else of CPU time.
  std::vector<NamedTimeSpan> phases;
  std::vector<NamedTimeSpan> regions;    // named by the measured program
  std::vector<NamedTimeSpan> probing;    // when modules were replayed
  std::vector<NamedTimeSpan> dithering;  // when --dither delayed the measured program
  std::vector<MetricSeries> metrics;
  std::vector<LayerDistribution> layer_distributions;  // of the layers or phases with the highest energy
  std::optional<Advice> advice;                        // set by the owner of a page; none: not examined

  const LevelView* level(std::string_view level_name) const {
    for (const LevelView& level : levels) {
      if (level.by == level_name) return &level;
    }
    return nullptr;
  }
};

}  // namespace joulemap

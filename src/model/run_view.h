// SPDX-License-Identifier: Apache-2.0
//
// RunView: what pages and plots show of one run: all levels of its report at once, and what happened when. Plain data of
// bounded size, however long the run; built by attribution/analysis/run_view_builder.h. Joules, watts; times are seconds
// since the command began. What is not known is empty, never 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"
#include "model/report_result.h"
#include "model/run_rates.h"

namespace joulemap {

// The rows of `report --by <by>`, the largest first.
struct LevelView {
  std::string by;
  std::vector<ReportRow> rows;
  std::vector<ReportRow> groups;  // as in ReportResult; only where they were asked for
  std::optional<double> attributed_j;
  std::optional<double> idle_j;
  std::optional<double> unattributed_j;
  Diagnostics diagnostics;  // of this level; those of the run are in RunView::run
};

// Neighbours are put together where there would be too many: then `count` is how many it stands for.
struct TimeBand {
  std::string name;
  double begin_s = 0;
  double end_s = 0;
  std::uint64_t count = 1;
};

// A step or an epoch: what the whole machine drew while it lasted, probing apart. Of several steps in one, sums.
struct StageView {
  std::uint64_t number = 0;  // of the first
  std::uint64_t count = 1;
  double begin_s = 0;
  double end_s = 0;
  double time_s = 0;
  std::optional<double> energy_j;
  std::optional<double> loss;  // mean of what was reported meanwhile
  // Energy for each unit by which the loss is below that of the stage before; nothing where it is not.
  std::optional<double> joules_per_loss;
};

struct MetricPoint {
  double time_s = 0;
  std::optional<std::int64_t> step;
  double value = 0;
};

struct MetricSeries {
  std::string name;
  std::uint64_t count = 0;          // reported
  std::vector<MetricPoint> points;  // every n-th of them
};

struct LayerPoint {
  double time_s = 0;  // when the step or stretch began
  double energy_j = 0;
  std::optional<std::int64_t> step;  // its number: a GPU runs it later than the program begins it
};

// What spreads are of.
enum class SpreadLevel : unsigned char { layer, phase };

// How the energy of a layer or phase varies over the run.
struct LayerSpread {
  std::vector<std::string> path;  // as in the rows of that level
  std::string device;
  std::string per;            // "step": of single kernels, on CPUs means over time; "call": such means over calls
  std::uint64_t samples = 0;  // steps, or stretches
  double mean_j = 0;
  std::vector<double> quantiles_j;  // kSpreadQuantiles of them, from the least to the most
  std::vector<LayerPoint> points;   // every n-th sample as it came; only where they were asked for
};
inline constexpr std::size_t kSpreadQuantiles = 101;

// What the parts of the machine used: sums of the domains that are counted.
struct ComponentEnergy {
  std::string name;  // "GPU", "CPU", "memory", "platform", "other"
  EnergyTotals totals;
};

// How much of a run is told one by one. What is more is put together, or every n-th is told.
struct ViewLimits {
  std::size_t slices = 1200;  // of power over time
  std::size_t stages = 2000;  // steps, epochs
  std::size_t metric_points = 2000;
  std::size_t spreads = 40;
  std::size_t layer_points = 0;  // of each spread
  SpreadLevel spreads_of = SpreadLevel::layer;
};

struct RunView {
  // As of `report --by domain`: provenance, domains, totals, overhead, diagnostics. Its power and tracks are means over
  // `slice_s` each, up to ViewLimits::slices of them, so they keep the energy.
  ReportResult run;
  RunRates rates;  // by the steps, epochs and samples of the time that is looked at
  std::vector<ComponentEnergy> components;
  std::vector<LevelView> levels;  // phase, layer, op, tensor, function, region, kernel; those that have rows

  std::vector<StageView> steps;   // up to ViewLimits::stages; then several in one
  std::vector<StageView> epochs;  // likewise
  std::vector<TimeBand> phases;   // what ran most at each moment: of the GPU where its kernels are known, else of CPUs
  std::vector<TimeBand> regions;  // that the program named itself
  std::vector<TimeBand> probing;  // when modules were replayed, and
  std::vector<TimeBand> dithering;  // when the program was held up
  std::vector<MetricSeries> metrics;
  std::vector<LayerSpread> layer_spreads;  // of those that drew the most

  const LevelView* level(std::string_view by) const {
    for (const LevelView& level : levels) {
      if (level.by == by) return &level;
    }
    return nullptr;
  }
};

}  // namespace joulemap

// SPDX-License-Identifier: Apache-2.0
//
// ReportResult: what `joulemap report` says about a recording. Plain data; seconds and joules. The names follow the
// JSON that programs rely on (schema joulemap.report/1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/cause_class.h"
#include "model/diagnostics.h"
#include "model/domain_energy.h"
#include "model/energy_totals.h"
#include "model/recorded.h"

namespace joulemap {

// Mean power of a domain in equal slices of the run; nothing where nothing is known.
struct PowerSeries {
  std::string domain;
  std::vector<std::optional<double>> watts;
};

// A track beside the power: clock, temperature, utilisation ... as means of the same slices.
struct ReportTrack {
  std::string name;
  Quantity quantity = Quantity::temperature;
  std::vector<std::optional<double>> values;
};

// A counter that is renewed at a regular period, as the recording shows it.
struct CounterSteps {
  std::string channel;
  double period_s = 0;
  double half_width_s = 0;        // how well the moments of its steps are known
  std::int64_t last_step_ns = 0;  // one of them; CLOCK_MONOTONIC of its machine
  std::uint64_t slips = 0;        // times it was not renewed as usual
};

struct ReportRow {
  std::vector<std::string> path;
  std::string name;          // as recorded
  std::string display_name;  // for people
  std::string device;
  std::optional<std::uint64_t> count;
  double time_s = 0;
  std::optional<double> energy_j;
  std::optional<double> low_j;
  std::optional<double> high_j;
  std::optional<double> dynamic_j;
  std::optional<double> power_w;
  std::optional<double> share;      // of all rows
  std::string basis;                // "measured", "estimated"
  std::optional<Cause> cause = {};  // of what ran; nothing where that is not told
};

// What the program reported about itself while it ran.
struct ReportedMetric {
  std::string name;
  std::uint64_t count = 0;
  double first = 0;
  double last = 0;
  double sum = 0;
};

// What replaying modules cost, to find out what they draw: all that the machine drew meanwhile.
struct ProbeCost {
  double time_s = 0;
  std::optional<double> energy_j;
};

struct ReportResult {
  std::vector<std::string> inputs;
  std::vector<std::string> command;
  std::vector<std::string> hosts;
  std::optional<std::int64_t> start_unix_ns;
  std::optional<std::int64_t> start_monotonic_ns;  // of the first recorder's machine
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool is_clipped = false;  // only a part of the run is told of; steps, epochs and metrics are of all of it
  bool complete = false;    // every part was ended as it should, and nothing was lost on the way

  std::string by = "domain";
  double interval = 0.9;
  double elapsed_s = 0;
  EnergyTotals totals;
  std::optional<double> attributed_j;
  std::optional<double> idle_j;
  std::optional<double> unattributed_j;
  std::vector<DomainEnergy> domains;
  std::vector<ReportRow> rows;
  // Sums over branches of the tree that rows make, in the path of the branch (model/path_tree.h), whose intervals know
  // how errors of rows hang together. An empty path: all of a device. Only where they were asked for.
  std::vector<ReportRow> groups;

  double slice_s = 0;
  std::vector<PowerSeries> power;
  std::vector<ReportTrack> tracks;
  std::vector<CounterSteps> counter_steps;
  std::uint64_t steps = 0;
  std::uint64_t epochs = 0;
  std::vector<ReportedMetric> metrics;
  std::vector<ChannelCalibration> calibration;
  std::vector<EnvironmentFact> environment;

  std::optional<ProbeCost> probe;   // nothing: modules were not replayed
  std::optional<double> dither_s;   // how long the program was held up; nothing: it was not
  std::optional<double> own_cpu_s;  // what recording cost; none when it was cut off
  std::uint64_t samples = 0;
  std::uint64_t file_bytes = 0;
  Diagnostics diagnostics;
};

}  // namespace joulemap

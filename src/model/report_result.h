// SPDX-License-Identifier: Apache-2.0
//
// ReportResult: the result of `joulemap report` for a recording. Plain data; seconds and joules. Field names follow the
// public JSON (schema joulemap.report/1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/cause_class.h"
#include "model/diagnostics.h"
#include "model/domain_energy.h"
#include "model/energy_totals.h"
#include "model/idle_cause.h"
#include "model/recorded.h"

namespace joulemap {

// Mean power of a domain in equal slices of the run; none where it is unknown.
struct PowerSeries {
  std::string domain;
  std::vector<std::optional<double>> watts;
};

// A context track such as clock, temperature or utilisation, as means over the same slices.
struct ReportTrack {
  std::string name;
  Quantity quantity = Quantity::temperature;
  std::vector<std::optional<double>> values;
};

// Update timing of a counter that updates at a regular period, as found in the recording.
struct CounterUpdateTiming {
  std::string channel;
  double period_s = 0;
  double half_width_s = 0;              // half width of the known update times
  std::int64_t last_update_ns = 0;      // one update time; CLOCK_MONOTONIC of its machine
  std::uint64_t irregular_updates = 0;  // number of irregular updates
};

// Energy of a device while nothing ran on it.
struct IdleEntry {
  IdleCause cause = IdleCause::unknown;
  std::vector<std::string> path;  // of the scope that it waited for; empty: in no row
  std::string device;
  double time_s = 0;
  std::optional<double> energy_j;
  std::optional<double> low_j;
  std::optional<double> high_j;
  bool in_rows = false;  // the same joules are waiting_j of a row
};

struct ReportRow {
  std::vector<std::string> path;
  std::string name;          // as recorded
  std::string display_name;  // human-readable
  std::string device;
  std::optional<std::uint64_t> count;
  double time_s = 0;
  std::optional<double> energy_j;
  std::optional<double> low_j;
  std::optional<double> high_j;
  std::optional<double> dynamic_j;
  std::optional<double> power_w;
  std::optional<double> share;            // fraction of all rows
  std::string basis;                      // "measured", "estimated"
  std::optional<EnergyCause> cause = {};  // of what ran; none when unknown
  // Time and energy of the idle GPU that waited for this scope: not part of time_s and energy_j. None where it is
  // unknown, or where rows are not scopes.
  std::optional<double> waiting_s = {};
  std::optional<double> waiting_j = {};
  std::optional<double> waiting_low_j = {};
  std::optional<double> waiting_high_j = {};
};

// A metric that the program reported while it ran.
struct ReportedMetric {
  std::string name;
  std::uint64_t count = 0;
  double first = 0;
  double last = 0;
  double sum = 0;
};

// Cost of replaying modules to measure their power: the energy of the whole machine in that time.
struct ProbeCost {
  double time_s = 0;
  std::optional<double> energy_j;
};

// Readings of the clock event reasons of all GPUs.
struct ClockReadings {
  std::uint64_t readings = 0;
  std::uint64_t throttled = 0;  // by a power limit, heat or the hardware
};

struct ReportResult {
  std::vector<std::string> inputs;
  std::vector<std::string> command;
  std::vector<std::string> hosts;
  std::optional<std::int64_t> start_unix_ns;
  std::optional<std::int64_t> start_monotonic_ns;  // of the first recorder's machine
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool is_clipped = false;  // only a part of the run is analysed; steps, epochs and metrics still cover all of it
  bool complete = false;    // every part was closed properly and no data were lost

  std::string by = "domain";
  double interval = 0.9;
  double elapsed_s = 0;
  EnergyTotals totals;
  std::optional<double> attributed_j;
  std::optional<double> idle_j;
  std::optional<double> unattributed_j;
  std::vector<IdleEntry> idle;  // what idle_j was used for; the largest first
  std::vector<DomainEnergy> domains;
  std::vector<ReportRow> rows;
  // Sums over branches of the tree of rows, with the path of the branch (scopes/path_tree.h). Their intervals include
  // the correlation of row errors. An empty path is the whole device. Only on request.
  std::vector<ReportRow> groups;

  double slice_s = 0;
  std::vector<PowerSeries> power;
  std::vector<ReportTrack> tracks;
  std::vector<CounterUpdateTiming> counter_updates;
  ClockReadings clock_readings;
  std::uint64_t steps = 0;
  std::uint64_t epochs = 0;
  std::vector<ReportedMetric> metrics;
  std::vector<ChannelCalibration> calibration;
  std::vector<EnvironmentFact> environment;

  std::optional<ProbeCost> probe;        // none: modules were not replayed
  std::optional<double> dither_s;        // total delay inserted into the program; none: no dithering
  std::optional<double> overhead_cpu_s;  // cost of recording; none in a truncated recording
  std::uint64_t samples = 0;
  std::uint64_t file_bytes = 0;
  Diagnostics diagnostics;
};

}  // namespace joulemap

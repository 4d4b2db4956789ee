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
#include "model/serving_result.h"

namespace joulemap {

// Mean power of a domain in W, in equal slices of the run of ReportResult::slice_s; none where it is unknown.
struct PowerSeries {
  std::string domain;
  std::vector<std::optional<double>> watts;
};

// A gauge such as clock, temperature or utilisation: means over the slices of PowerSeries.
struct ReportTrack {
  std::string name;
  Quantity quantity = Quantity::temperature;
  std::vector<std::optional<double>> values;
};

// When a counter with regular updates was updated, as found in the recording.
struct CounterUpdateTiming {
  std::string channel;
  double period_s = 0;
  double half_width_s = 0;              // uncertainty of last_update_ns: half width
  std::int64_t last_update_ns = 0;      // time of the last update; CLOCK_MONOTONIC of its machine
  std::uint64_t irregular_updates = 0;  // number of updates that deviated from the period
};

// Energy of a device while nothing ran on it.
struct IdleEntry {
  IdleCause cause = IdleCause::unknown;
  std::vector<std::string> path;  // scope that the device waited for; empty when there is none
  std::string device;
  double time_s = 0;
  std::optional<double> energy_j;
  std::optional<double> low_j;
  std::optional<double> high_j;
  bool is_included_in_rows = false;  // energy_j is also part of waiting_j of a row
  // The parts of time_s and energy_j that are of the program: outside of probing, and before the end of the steps that a
  // comparison or advice examines.
  std::optional<double> program_time_s = {};
  std::optional<double> program_energy_j = {};
};

struct ReportRow {
  std::vector<std::string> path;
  std::string name;          // as in the recording; a kernel's is mangled
  std::string display_name;  // for people; a kernel's is demangled
  std::string device;
  std::optional<std::uint64_t> count;
  double time_s = 0;
  std::optional<double> energy_j;
  std::optional<double> low_j;
  std::optional<double> high_j;
  std::optional<double> dynamic_j;
  std::optional<double> power_w;
  std::optional<double> share;            // energy_j as a fraction of the energy of all rows
  std::string basis;                      // origin of the power (docs/reference/glossary.md): "regressed" ...
  std::optional<EnergyCause> cause = {};  // why the row used energy; none when unknown
  // Time and energy of an idle GPU that waited for this scope. They are not part of time_s and energy_j. None when
  // unknown, and when rows are not scopes.
  std::optional<double> waiting_s = {};
  std::optional<double> waiting_j = {};
  std::optional<double> waiting_low_j = {};
  std::optional<double> waiting_high_j = {};
};

// A metric that the measured program reported while it ran: number, first, last and sum of its values.
struct ReportedMetric {
  std::string name;
  std::uint64_t count = 0;
  double first = 0;
  double last = 0;
  double sum = 0;
};

// Part of the time of a run, in seconds since its begin.
struct RunTimeSpan {
  double begin_s = 0;
  double end_s = 0;
};

// Cost of probing (record --probe): time in which modules were replayed, and energy of the whole machine in that time.
struct ProbeCost {
  double time_s = 0;
  std::optional<double> energy_j;
  std::vector<RunTimeSpan> spans = {};  // of time_s, in time order; of several machines, the one that probed longest
};

// Number of readings of NVML's clock event reasons, over all GPUs.
struct ThrottleReadingCounts {
  std::uint64_t readings = 0;
  std::uint64_t throttled = 0;  // readings with clocks limited by power, heat or the hardware
};

// Numbers of steps and epochs, fractions included where a recording covers only a part of one.
struct CoveredStepCounts {
  double steps = 0;  // without evaluation steps
  double evaluation_steps = 0;
  double epochs = 0;
};

struct ReportResult {
  std::vector<std::string> inputs;
  std::vector<std::string> command;
  std::vector<std::string> hosts;
  std::optional<std::int64_t> start_unix_ns;
  std::optional<std::int64_t> start_monotonic_ns;  // CLOCK_MONOTONIC of the first recorder's machine
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool is_clipped = false;  // --time selected a part of the run; steps, epochs and metrics still cover the whole run
  bool complete = false;    // every part was closed properly and no data were lost

  std::string by = "domain";
  double interval = 0.9;
  double elapsed_s = 0;
  EnergyTotals totals;
  std::optional<double> attributed_j;
  std::optional<double> idle_j;
  std::optional<double> unattributed_j;
  std::vector<IdleEntry> idle;  // idle_j by device and cause, the largest first
  std::vector<DomainEnergy> domains;
  std::vector<ReportRow> rows;
  // Sums over branches of the tree of rows, each with the path of its branch (scopes/path_tree.h); an empty path is the
  // whole device. Their intervals account for correlated errors of rows. Empty unless the query requests groups.
  std::vector<ReportRow> groups;

  std::optional<ServingResult> serving;  // by request and by token

  double slice_s = 0;
  std::vector<PowerSeries> power;
  std::vector<ReportTrack> tracks;
  std::vector<CounterUpdateTiming> counter_updates;
  ThrottleReadingCounts clock_readings;
  std::uint64_t steps = 0;              // without evaluation steps
  std::uint64_t evaluation_steps = 0;   // inference in a program that trains (MarkKind::evaluation)
  std::uint64_t evaluation_groups = 0;  // uninterrupted sequences of evaluation steps
  std::uint64_t epochs = 0;
  std::optional<CoveredStepCounts> covered;  // the same with fractions; none: whole numbers
  bool lacks_steps = false;                  // a part of the recording lost its last steps: the counts are too small
  std::vector<ReportedMetric> metrics;
  std::vector<ChannelCalibration> calibration;
  std::vector<EnvironmentFact> environment;

  std::optional<ProbeCost> probe;        // none: modules were not replayed
  std::optional<double> dither_s;        // total delay that --dither inserted; none: no dithering
  std::optional<double> overhead_cpu_s;  // CPU time of the recorder; none in a truncated recording
  std::uint64_t samples = 0;
  std::uint64_t file_bytes = 0;
  Diagnostics diagnostics;
};

}  // namespace joulemap

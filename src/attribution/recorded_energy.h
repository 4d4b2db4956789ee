// SPDX-License-Identifier: Apache-2.0
//
// RecordedEnergy: the energy of every domain between two moments, and its power over time, from recorded samples as they
// are read. The same arithmetic as a live measurement (EnergyWindow, make_domain_table), so `report` and `stat` agree.
// Constant memory, however long the recording. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/others_use.h"
#include "attribution/power_shape.h"
#include "attribution/throttling.h"
#include "attribution/time_curve.h"
#include "model/channel.h"
#include "model/domain_table.h"
#include "model/energy_window.h"
#include "model/power_curve.h"
#include "model/report_result.h"
#include "model/sample.h"
#include "model/step_clock.h"

namespace joulemap::attribution {

class RecordedEnergy {
 public:
  // `channels`: what Sample::channel counts in. `slices`: of the power curve, which people look at; energy over time, which
  // is shared out among what ran, is kept finer.
  RecordedEnergy(std::span<const Channel> channels, TimeSpan span, std::size_t slices,
                 EdgeReadings edge_readings = EdgeReadings::taken_there);

  // Of one channel in order of time.
  void add(const Sample& sample);

  struct Result {
    DomainTable table;
    std::vector<PowerSeries> power;   // of the domains of the table that have a value
    std::vector<ReportTrack> tracks;  // of channels that tell no energy
    std::vector<CounterSteps> steps;  // of slow counters that step regularly
    double slice_s = 0;

    struct DomainCurve {
      std::string domain;
      DomainClass domain_class = DomainClass::other;
      std::string device;
      TimeCurve energy_j;  // finished; sums to the domain's energy; between steps of a slow counter as `shape` has it
      // Of a slow counter whose steps are known: what it said at those that were read.
      std::vector<EnergyPoint> steps;
      // Of a quick counter: what it said when it was read, in the beginning of a long recording.
      std::vector<EnergyPoint> readings = {};
      std::vector<PowerPoint> history = {};  // what the device kept of its power, as far as it was asked for
      double uncertainty = 0;                // of its sum: half width at 95 %, as a share of it
      std::string device_model = {};
      double power_limited = 0;              // share of the time
      bool held_back = false;                // by that or by heat, often enough to matter
      std::vector<BusyStretch> others = {};  // where processes ran on it that are not the command's
      PowerShape shape = {};                 // all of its history
    };
    std::vector<DomainCurve> curves;               // of all domains that are counted
    std::map<std::string, TimeCurve> cpu_times_s;  // by channel
    std::map<std::string, std::vector<CpuTimePoint>> cpu_time_readings;
  };
  Result finish();

 private:
  // A channel that tells energy.
  struct Meter {
    EnergyWindow window;
    PowerCurve curve;
    bool begun = false;
    bool ended = false;
    double joules = 0;  // of all readings so far
    std::optional<std::int64_t> known_until_ns;
    StepClock steps{StepClock::EqualValues::mean_no_step, kNvmlLatch_ns};
    TimeCurve energy_j;
    // Of a slow counter: when it was seen to have moved, and its joules then; once its steps are known, when it moved.
    std::vector<EnergyPoint> points;
    std::size_t placed = 0;             // so many of them are
    std::vector<EnergyPoint> readings;  // of a quick counter
  };
  // CPU time: how much was used when.
  struct CpuTime {
    TimeCurve used_s;
    std::optional<Reading> last;
    std::vector<CpuTimePoint> readings;
  };
  // Power that a device has kept by itself.
  struct History {
    PowerShape shape;
    std::vector<PowerPoint> points = {};  // the first
  };
  // A channel that does not: the mean of its readings in each slice.
  struct Track {
    std::vector<double> sums;
    std::vector<std::uint64_t> counts;
    Throttling throttling = {};
    std::optional<OthersUse> others = {};
  };
  struct Follower {
    Channel channel;
    std::optional<Meter> meter;
    std::optional<CpuTime> cpu_time;
    std::optional<History> history;
    Track track;
  };

  void follow_energy(Meter& meter, const Channel& channel, const Reading& reading);
  void follow_steps(Follower& follower, const Reading& reading);
  void follow_cpu_time(Follower& follower, const Reading& reading) const;
  void follow_track(Follower& follower, const Reading& reading) const;
  void add_curves(Result& result);
  History history_of(const std::string& device);
  double power_limited(const std::string& device) const;
  std::vector<BusyStretch> others_on(const std::string& device) const;
  bool held_back(const std::string& device) const;
  static void place_points(Meter& meter, std::int64_t until_ns);
  static void draw_slow_counter(Meter& meter, const PowerShape& shape);
  void cut_between_steps(Meter& meter, ChannelEnergy& energy) const;

  TimeSpan span_;
  EdgeReadings edge_readings_;
  std::size_t slices_;
  std::vector<Follower> followers_;
  std::map<std::string, StepClock> power_steps_;  // by device: what is polled often tells the period of what is not
};

}  // namespace joulemap::attribution

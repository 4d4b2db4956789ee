// SPDX-License-Identifier: Apache-2.0
//
// RecordedEnergy: the energy of every domain in a span of time, and its power over time, from recorded samples in the
// order they are read. Uses the same curves as a live measurement (EnergyCurves, make_domain_table), so `report` and
// `record` agree. Keeps counter readings and power history only up to a limit. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/analysis/throttling.h"
#include "attribution/gpu/co_tenant_use.h"
#include "attribution/ledger/time_curve.h"
#include "energy/energy_curves.h"
#include "energy/make_domain_table.h"
#include "model/channel.h"
#include "model/report_result.h"
#include "model/sample.h"

namespace joulemap::attribution {

class RecordedEnergy {
 public:
  // `channels`: indexed by Sample::channel. `slices`: number of values of power over time that reports show.
  RecordedEnergy(std::span<const Channel> channels, TimeSpan span, std::size_t slices);

  // Samples of one channel must come in order of time.
  void add(const Sample& sample);

  struct Result {
    DomainTable domain_table;
    std::vector<PowerSeries> power_series;             // of the domains of the table whose energy is known
    std::vector<ReportTrack> gauge_tracks;             // of channels that measure no energy
    std::vector<CounterUpdateTiming> counter_updates;  // of slow counters that update regularly
    ThrottleReadingCounts clock_readings;
    double slice_s = 0;

    struct DomainCurve {
      std::string domain;
      DomainClass domain_class = DomainClass::other;
      std::string device;
      TimeCurve energy_j;  // finished: `curve` in equal cells, for attribution
      EnergyCurve curve;
      // Slow counter: its values at the updates that were read; of a GPU whose updates are unknown, its readings.
      std::vector<EnergyPoint> counter_updates = {};
      // Fast counter: its values when read; in a long recording only the first ones.
      std::vector<EnergyPoint> readings = {};
      std::vector<PowerPoint> power_history = {};  // power history of the device: the first part
      double relative_uncertainty = 0;             // relative half width at 95 % of its sum
      std::string device_model = {};
      double power_limited_fraction = 0;             // fraction of the time at the power limit
      bool is_throttled = false;                     // by power limit or heat, often enough to matter
      std::vector<BusySlice> co_tenant_slices = {};  // busy time of co-tenants on it
    };
    std::vector<DomainCurve> domain_curves;        // of all counted domains
    std::map<std::string, TimeCurve> cpu_times_s;  // by channel name
    std::map<std::string, std::vector<CpuTimePoint>> cpu_time_readings;
  };
  Result finish();

 private:
  // CPU time used over time.
  struct CpuTime {
    TimeCurve used_cpu_s;
    std::optional<Reading> last_reading;
    std::vector<CpuTimePoint> readings;
  };
  // A channel that measures no energy: the mean of its readings in each slice.
  struct GaugeTrack {
    std::vector<double> slice_sums;
    std::vector<std::uint64_t> slice_counts;
    ThrottlingReadings throttling = {};
    std::optional<CoTenantUse> co_tenants = {};
  };
  struct ChannelState {
    Channel channel;
    std::optional<CpuTime> cpu_time = {};
    std::vector<EnergyPoint> readings = {};      // of a fast counter
    std::vector<PowerPoint> power_history = {};  // power history of the device: the first part
    GaugeTrack gauge_track = {};
  };

  void add_energy_reading(std::size_t channel, const Reading& reading);
  void add_cpu_time_reading(ChannelState& state, const Reading& reading) const;
  void add_gauge_reading(ChannelState& state, const Reading& reading) const;
  std::vector<ChannelEnergy> compute_channel_energies(Result& result) const;
  void add_gauge_tracks(Result& result) const;
  void add_power_series(Result& result) const;
  void add_domain_curves(Result& result);
  std::optional<std::size_t> find_channel_of_domain(const DomainEnergy& row) const;
  std::vector<PowerPoint> take_power_history(const std::string& device);
  double power_limited_fraction(const std::string& device) const;
  std::vector<BusySlice> co_tenant_slices_on(const std::string& device) const;
  bool is_throttled(const std::string& device) const;

  TimeSpan span_;
  std::size_t slice_count_;
  std::vector<ChannelState> channel_states_;  // by channel
  EnergyCurves curves_;
};

}  // namespace joulemap::attribution

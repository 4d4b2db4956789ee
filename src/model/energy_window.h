// SPDX-License-Identifier: Apache-2.0
//
// EnergyWindow: the energy of one channel between two moments that the hardware knows nothing of.
//
// A counter is renewed every T (1 ms for RAPL), so a reading is stale by anything up to T, and a window shorter than T
// would often read 0 J. Where the caller reads densely around begin() and just after end(), the window sees the counter's
// own steps near both edges and interpolates between them; else the edges stay as read. The uncertainty says which.
//
//       step s0      begin t0              end t1      step s2
//   ------|-------------|--------- ... ------|------------|-----> time
//         E(s0)         E(t0) interpolated   E(t1)        E(s2)
//
// Feed every reading, in order of time: before begin, during, and after end until is_settled().
#pragma once

#include <cstdint>
#include <optional>

#include "model/channel_energy.h"
#include "model/edge_rules.h"
#include "model/energy_accumulator.h"

namespace joulemap {

// What is known of the edges of a window.
enum class EdgeReadings : std::uint8_t {
  taken_there,  // the caller reads at both
  around_them,  // they lie anywhere between readings, which somebody else took: what was then is cut out of those
};

class EnergyWindow {
 public:
  // `known_refresh_ns`: what an earlier window of the same channel has found out.
  explicit EnergyWindow(const Channel& channel, std::optional<std::int64_t> known_refresh_ns = {},
                        EdgeReadings edge_readings = EdgeReadings::taken_there);

  void observe(const Reading& reading) noexcept;

  // Both follow a reading taken at that moment, but see EdgeReadings.
  void begin(std::int64_t time_ns) noexcept;
  void end(std::int64_t time_ns) noexcept;

  // Whether dense reading can stop. Before end: the refresh is known, and a step on either side of begin was seen. After
  // end: the step that follows was seen, or there is no refresh to wait for.
  // Gauges and estimates are always settled: their value at the edge is the value.
  bool is_settled() const noexcept;

  const Channel& channel() const { return channel_; }
  // How often the counter is renewed, once that was seen.
  std::optional<std::int64_t> refresh_ns() const { return refresh_.ns(); }

  std::uint64_t steps() const { return accumulator_.tally().steps; }
  // Energy so far, as read: for interval lines.
  double joules_so_far() const;

  // Of everything that was observed, inside the window or not.
  double joules_in_all() const { return accumulator_.tally().joules; }

  ChannelEnergy result() const;

 private:
  // A gauge's power at a moment, as it was read.
  struct PowerPoint {
    std::int64_t time_ns;
    double watts;
  };
  void follow_gauge(const Reading& reading) noexcept;
  // What a counter had come to.
  struct ReadPoint {
    std::int64_t time_ns;
    double joules;
  };
  // What a counter showed at a moment between two readings, and what lies between those.
  struct EvenEdge {
    double joules;
    double between_j;
    std::int64_t between_ns;
  };
  void follow_counter(const ReadPoint& before) noexcept;
  bool is_seldom_read(const std::optional<EvenEdge>& edge) const;
  EdgeEnergy edge_between_readings(const EvenEdge& edge) const;
  EdgeEnergy edge_as_read(double joules) const;
  EdgeEnergy edge_between(std::int64_t time_ns, const EnergyStep& from, const EnergyStep& to) const;
  EdgeEnergy begin_edge() const;
  EdgeEnergy end_edge() const;
  std::optional<EnergyStep> step_before(const EnergyStep& step, double joules) const;
  double refresh_s() const;
  void judge_missing_time(ChannelEnergy& energy) const;
  void measure_within_one_step(ChannelEnergy& energy) const;
  void measure_between_edges(ChannelEnergy& energy) const;

  Channel channel_;
  EdgeReadings edge_readings_;
  EnergyAccumulator accumulator_;
  std::optional<std::int64_t> begin_ns_;
  std::optional<std::int64_t> end_ns_;
  EnergyTally tally_at_begin_;
  double read_at_begin_j_ = 0;
  double read_at_end_j_ = 0;
  std::int64_t read_at_end_late_ns_ = 0;  // how long after the end that was
  std::uint64_t steps_at_end_ = 0;
  std::optional<EnergyStep> step_before_begin_;
  std::optional<EnergyStep> step_after_begin_;
  std::optional<EnergyStep> last_step_before_end_;
  std::optional<EnergyStep> step_after_end_;
  RefreshEstimate refresh_;
  std::optional<ReadPoint> counter_before_;  // of a counter: the reading before the last
  std::optional<EvenEdge> even_at_begin_;    // if it grew evenly between the readings around it
  std::optional<EvenEdge> even_at_end_;
  std::optional<PowerPoint> gauge_;         // of a gauge: the last reading,
  std::optional<PowerPoint> gauge_before_;  // and the one before
};

}  // namespace joulemap

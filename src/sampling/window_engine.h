// SPDX-License-Identifier: Apache-2.0
//
// WindowEngine: the energy of any number of windows, nested, overlapping, of any thread, from one stream of samples. It owns
// the sensors, a Sampler and one background thread, which looks about every 20 ms: it feeds the samples to the curve
// of each channel, and keeps the edges of windows once they are settled, so that a window of hours costs nothing.
//
//   WindowTable table(1);
//   auto engine = WindowEngine::start(table, {.root = root});
//   WindowId window = table.begin();     // lock-free; any thread
//   table.end(window);
//   Result<WindowResult> result = (*engine)->result(window, Patience::wait);
//   table.release(window);
//
// result() may be called from any thread. After stop() what was measured can still be asked for. Destroy it only where its
// threads exist: the child of a fork must leave it alone. Times are CLOCK_MONOTONIC.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/system_root.h"
#include "energy/energy_curves.h"
#include "energy/make_domain_table.h"
#include "model/sensor_status.h"
#include "sampling/open_sensors.h"
#include "sampling/sampler.h"
#include "sampling/window_table.h"

namespace joulemap::sampling {

struct WindowOptions {
  SystemRoot root;
  std::string sensors;                    // as --sensors takes them; empty for all
  std::optional<std::int64_t> period_ns;  // between two reads; else 5 ms, or a sensor's own where that is longer
};

enum class Patience {
  none,  // what is known now; also of a window that is still open
  wait,  // until the sensors have been renewed after its end, at most 300 ms
};

struct WindowResult {
  WindowId window = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;  // now, of a window that is still open
  bool settled = false;     // no later call will tell more
  DomainTable energy;

  double elapsed_s() const { return static_cast<double>(end_ns - begin_ns) * 1e-9; }
};

class WindowEngine {
 public:
  // Fails only for a sensor name that does not exist. Without sensors windows have times, and no energy.
  // The table outlives the engine.
  static Result<std::unique_ptr<WindowEngine>> start(WindowTable& table, const WindowOptions& options);
  static std::unique_ptr<WindowEngine> start(WindowTable& table, OpenSensors sensors);
  ~WindowEngine();
  WindowEngine(const WindowEngine&) = delete;
  WindowEngine& operator=(const WindowEngine&) = delete;

  // not_found when the window is not alive, usage when it is waited for and has not ended.
  Result<WindowResult> result(WindowId window, Patience patience);

  void stop();

 private:
  // What the engine knows of a window. The edges stand in the order of the curves; none until they are settled.
  struct Record {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::vector<std::optional<CurveEdge>> begin_edges;
    std::vector<std::optional<CurveEdge>> end_edges;
    std::size_t begins_missing = 0;
    std::size_t ends_missing = 0;
    std::shared_ptr<const std::vector<EnergyTally>> at_begin;  // shared by the windows that were adopted together
  };

  WindowEngine(WindowTable& table, OpenSensors sensors);
  void run();
  void pay_attention();
  // These hold the lock.
  void look();
  void adopt_windows();
  void feed_curves();
  void keep_edges(WindowId window, Record& record);
  void keep_edges_at(std::int64_t time_ns, std::vector<std::optional<CurveEdge>>& edges, std::size_t& missing,
                     bool give_up);
  bool is_settled(const Record& record) const;
  WindowResult measure(WindowId window, const Record& record) const;
  void wake();

  WindowTable& table_;
  std::vector<SensorStatus> statuses_;
  bool check_estimates_ = false;
  Sampler sampler_;

  std::mutex lock_;
  EnergyCurves curves_;
  std::unordered_map<WindowId, Record> records_;
  std::vector<WindowId> unfinished_;  // whose edges are not all kept

  std::atomic<std::uint32_t> wakes_{0};  // what the thread sleeps on
  std::atomic<std::uint32_t> looks_{0};  // what those who wait sleep on
  std::atomic<int> waiting_{0};
  std::atomic<bool> read_for_waiting_{false};  // somebody new waits: everything is to be read once
  std::atomic<bool> stopping_{false};
  std::int64_t watch_closely_until_ns_ = 0;  // at the start, to see the refresh of the counters
  std::thread thread_;
};

}  // namespace joulemap::sampling

// SPDX-License-Identifier: Apache-2.0
//
// WindowEngine: the energy of any number of windows, nested or overlapping, from any thread, out of one stream of
// samples. It owns the sensors, a Sampler and one background thread, which runs about every 20 ms. That thread feeds
// the samples to the curve of each channel. It stores the energy at the begin and end of windows once it is settled, so
// that the curves need only the recent past, however long a window is.
//
//   WindowTable table(1);
//   auto engine = WindowEngine::start(table, {.root = root});
//   WindowId window = table.begin();     // lock-free; any thread
//   table.end(window);
//   Result<WindowResult> result = (*engine)->result(window, WaitPolicy::wait);
//   table.release(window);
//
// result() may be called from any thread. After stop() results remain available. Destroy the engine only in the process
// that started it: the child of a fork must not touch it. Times are CLOCK_MONOTONIC.
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
  std::string sensors;                    // syntax of --sensors; empty for all
  std::optional<std::int64_t> period_ns;  // between two reads; default 5 ms, for estimates 20 ms or more
  bool operator==(const WindowOptions&) const = default;
};

enum class WaitPolicy {
  none,  // return what is known now; also for an open window
  wait,  // wait for the sensor updates after the end of the window, at most 300 ms
};

struct WindowResult {
  WindowId window = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;  // current time for an open window
  bool is_settled = false;  // no later reading can improve the energy
  DomainTable energy;

  double elapsed_s() const { return static_cast<double>(end_ns - begin_ns) * 1e-9; }
};

class WindowEngine {
 public:
  // Fails only for an unknown sensor name. Without sensors, windows have times but no energy. The table must outlive
  // the engine.
  static Result<std::unique_ptr<WindowEngine>> start(WindowTable& table, const WindowOptions& options);
  static std::unique_ptr<WindowEngine> start(WindowTable& table, OpenSensors sensors);
  ~WindowEngine();
  WindowEngine(const WindowEngine&) = delete;
  WindowEngine& operator=(const WindowEngine&) = delete;

  // Fails with not_found when the window does not exist, and with usage when the call would wait for an open window.
  Result<WindowResult> result(WindowId window, WaitPolicy wait_policy);

  void stop();

 private:
  // State of a window. Edges are in the order of the curves; nullopt until they are settled.
  struct WindowState {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::vector<std::optional<WindowEdgeEnergy>> begin_edges;
    std::vector<std::optional<WindowEdgeEnergy>> end_edges;
    std::size_t missing_begin_edge_count = 0;
    std::size_t missing_end_edge_count = 0;
    std::shared_ptr<const std::vector<EnergyTally>>
        tallies_at_begin;  // shared by the windows that were adopted together
  };

  WindowEngine(WindowTable& table, OpenSensors sensors);
  void run();
  void choose_sampling_mode();
  // The following functions require lock_.
  void update_windows();
  void register_new_windows();
  void add_samples_to_curves();
  void store_settled_edges(WindowId window, WindowState& state);
  void store_edge_energies(std::int64_t time_ns, std::vector<std::optional<WindowEdgeEnergy>>& edges,
                           std::size_t& missing_edge_count, bool has_settling_timed_out);
  bool is_settled(const WindowState& state) const;
  WindowResult compute_window_result(WindowId window, const WindowState& state) const;
  void wake_engine();

  WindowTable& window_table_;
  std::vector<SensorStatus> sensor_statuses_;
  bool cross_checks_estimates_ = false;
  Sampler sampler_;

  std::mutex lock_;
  EnergyCurves curves_;
  std::unordered_map<WindowId, WindowState> window_states_;
  std::vector<WindowId> unfinished_windows_;  // windows with edges that are not yet stored

  std::atomic<std::uint32_t> wake_count_{0};         // the engine thread sleeps on it
  std::atomic<std::uint32_t> engine_pass_count_{0};  // callers that wait for results sleep on it
  std::atomic<int> waiting_callers_{0};
  std::atomic<bool> is_read_requested_{false};  // a new caller waits: read every sensor once
  std::atomic<bool> stop_requested_{false};
  std::int64_t dense_reading_until_ns_ = 0;  // end of the dense reading that finds the counters' update periods
  std::thread thread_;
};

}  // namespace joulemap::sampling

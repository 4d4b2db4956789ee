// SPDX-License-Identifier: Apache-2.0
#include "sampling/window_engine.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "base/futex.h"
#include "base/scoped_signal_block.h"
#include "energy/channel_faults.h"
#include "recording/part_folder.h"

namespace joulemap::sampling {
namespace {

using sensors::SamplingMode;

constexpr std::int64_t kWindowEnginePeriod_ns = 20 * kNanosecondsPerMillisecond;
// Period of the engine thread while a caller waits: half the update period of RAPL.
constexpr std::int64_t kWindowEngineWaitPeriod_ns = kNanosecondsPerMillisecond / 2;
constexpr std::int64_t kMaxResultWait_ns = 300 * kNanosecondsPerMillisecond;
// A hanging sensor must block neither the start nor a wait.
constexpr std::int64_t kFirstReadTimeout_ns = 500 * kNanosecondsPerMillisecond;
constexpr std::int64_t kReadTimeout_ns = 50 * kNanosecondsPerMillisecond;
// Longest wait for sensor readings after the end of a window. The window is final then, even if readings are missing.
constexpr std::int64_t kMaxSettlingTime_ns = 2 * kNanosecondsPerSecond;
constexpr std::int64_t kInitialDenseReading_ns = 30 * kNanosecondsPerMillisecond;

// Read periods. A window may begin at any moment, and the accuracy of its edge depends on the distance of the readings
// around it. A period of 5 ms costs about one percent of one CPU (bench/windows). An estimate takes longer to read, and
// is only needed where nothing is measured.
constexpr std::int64_t kSensorReadPeriod_ns = 5 * kNanosecondsPerMillisecond;
constexpr std::int64_t kEstimateReadPeriod_ns = 20 * kNanosecondsPerMillisecond;

bool is_estimate_sensor(const sensors::Sensor& sensor) {
  return !sensor.channels().empty() && sensor.channels().front().provenance == Provenance::estimated;
}

void request_read_periods(OpenSensors& opened_sensors) {
  const bool has_measured_sensor = std::any_of(opened_sensors.sensors.begin(), opened_sensors.sensors.end(),
                                               [](const auto& sensor) { return !is_estimate_sensor(*sensor); });
  for (const std::unique_ptr<sensors::Sensor>& sensor : opened_sensors.sensors) {
    if (!is_estimate_sensor(*sensor)) {
      sensor->request_read_period(kSensorReadPeriod_ns);
    } else if (!has_measured_sensor || opened_sensors.are_estimates_requested) {
      sensor->request_read_period(kEstimateReadPeriod_ns);
    }
  }
}

// Whether waiting longer cannot improve the energy at `time_ns`.
bool is_edge_settled(const EnergyCurve& curve, std::int64_t time_ns) {
  // Two updates show the update period of a counter, and with it the age of the counter's first value.
  const std::size_t is_wait_over = has_counter_updates(curve.channel()) && !curve.is_refresh_known() ? 2 : 1;
  if (curve.count_points_after(time_ns) >= is_wait_over) return true;
  const EnergyTally& tally = curve.tally();
  if (tally.valid_reading_count > 0 && tally.last_read_code != ReadCode::ok) return true;
  // The counter was read for more than an update period after `time_ns` without an update: it is frozen.
  const std::int64_t refresh_ns = std::max(curve.refresh_ns(), 2 * kNanosecondsPerMillisecond);
  return tally.last_ns > time_ns + refresh_ns + refresh_ns / 2;
}

// The measured processes: this process and its descendants; under `joulemap record` all processes of that recording.
sensors::MeasuredProcessCriteria make_measured_process_criteria() {
  sensors::MeasuredProcessCriteria measured;
  const std::string name(recording::kRecordingIdVariable);
  const char* const id = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): as the program's own reads are
  if (id != nullptr) measured.environment_assignment = fmt::format("{}={}", name, id);
  return measured;
}

}  // namespace

Result<std::unique_ptr<WindowEngine>> WindowEngine::start(WindowTable& table, const WindowOptions& options) {
  Result<OpenSensors> opened_sensors = open_sensors({.root = options.root,
                                                     .sensors = options.sensors,
                                                     .program = "",
                                                     .period_ns = options.period_ns,
                                                     .measured_processes = make_measured_process_criteria()});
  if (!opened_sensors) return std::move(opened_sensors).error();
  if (!options.period_ns) request_read_periods(*opened_sensors);
  return start(table, std::move(*opened_sensors));
}

std::unique_ptr<WindowEngine> WindowEngine::start(WindowTable& table, OpenSensors sensors) {
  std::unique_ptr<WindowEngine> engine(new WindowEngine(table, std::move(sensors)));
  engine->sampler_.set_mode(SamplingMode::near_edge);
  engine->sampler_.start();
  engine->sampler_.read_all_sensors(kFirstReadTimeout_ns);
  engine->dense_reading_until_ns_ = monotonic_ns() + kInitialDenseReading_ns;
  const ScopedSignalBlock signal_block;
  engine->thread_ = std::thread([self = engine.get()] { self->run(); });
  return engine;
}

WindowEngine::WindowEngine(WindowTable& table, OpenSensors sensors)
    : window_table_(table),
      sensor_statuses_(std::move(sensors.statuses)),
      cross_checks_estimates_(sensors.are_estimates_requested),
      sampler_(std::move(sensors.sensors)),
      curves_(sampler_.channels(), EnergyCurve::Retention::latest) {}

WindowEngine::~WindowEngine() { stop(); }

void WindowEngine::stop() {
  if (!thread_.joinable()) return;
  stop_requested_.store(true);
  wake_engine();
  thread_.join();
  sampler_.stop();
  const std::lock_guard lock(lock_);
  update_windows();
}

void WindowEngine::wake_engine() {
  wake_count_.fetch_add(1, std::memory_order_release);
  wake_all_waiters(wake_count_);
}

void WindowEngine::run() {
  pthread_setname_np(pthread_self(), "joulemap");
  while (!stop_requested_.load()) {
    const std::uint32_t wake_count = wake_count_.load(std::memory_order_acquire);
    choose_sampling_mode();
    {
      const std::lock_guard lock(lock_);
      update_windows();
    }
    engine_pass_count_.fetch_add(1, std::memory_order_release);
    wake_all_waiters(engine_pass_count_);
    const std::int64_t period_ns = waiting_callers_.load() > 0 ? kWindowEngineWaitPeriod_ns : kWindowEnginePeriod_ns;
    wait_for_word_change(wake_count_, wake_count, monotonic_ns() + period_ns);
  }
}

// Sets the sampling mode: near_edge while a caller waits for a result and shortly after the start. A caller that begins
// to wait also triggers one read of all sensors, because gauges and estimates have no updates to wait for.
void WindowEngine::choose_sampling_mode() {
  const bool has_waiting_caller = waiting_callers_.load() > 0;
  const bool at_start = monotonic_ns() < dense_reading_until_ns_;
  sampler_.set_mode(has_waiting_caller || at_start ? SamplingMode::near_edge : SamplingMode::relaxed);
  if (has_waiting_caller && is_read_requested_.exchange(false)) sampler_.read_all_sensors(kReadTimeout_ns);
}

void WindowEngine::update_windows() {
  register_new_windows();
  add_samples_to_curves();
  std::erase_if(unfinished_windows_, [this](WindowId window) {
    const auto state_entry = window_states_.find(window);
    if (state_entry == window_states_.end()) return true;
    store_settled_edges(window, state_entry->second);
    return state_entry->second.missing_begin_edge_count == 0 && state_entry->second.missing_end_edge_count == 0;
  });
}

void WindowEngine::register_new_windows() {
  std::shared_ptr<const std::vector<EnergyTally>> tallies;
  const auto begun = [&](WindowId window, std::int64_t begin_ns) {
    if (!tallies) {
      std::vector<EnergyTally> current_tallies;
      for (const EnergyCurve& curve : curves_.curves()) current_tallies.push_back(curve.tally());
      tallies = std::make_shared<const std::vector<EnergyTally>>(std::move(current_tallies));
    }
    WindowState& state = window_states_[window];
    state.begin_ns = begin_ns;
    state.begin_edges.resize(curves_.curves().size());
    state.end_edges.resize(curves_.curves().size());
    state.missing_begin_edge_count = state.missing_end_edge_count = curves_.curves().size();
    state.tallies_at_begin = tallies;
    unfinished_windows_.push_back(window);
  };
  window_table_.adopt_and_free_slots(begun, [this](WindowId window) { window_states_.erase(window); });
}

void WindowEngine::add_samples_to_curves() {
  sampler_.drain([this](const Sample& sample) { curves_.observe(sample); });
}

// Stores the edges at `time_ns` that no later reading can change: with two points after an edge, the first can no
// longer be discarded as torn. `has_settling_timed_out`: stores the others, too, as they are.
void WindowEngine::store_edge_energies(std::int64_t time_ns, std::vector<std::optional<WindowEdgeEnergy>>& edges,
                                       std::size_t& missing_edge_count, bool has_settling_timed_out) {
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (edges[i] || (!has_settling_timed_out && curves_.curves()[i].count_points_after(time_ns) < 2)) continue;
    edges[i] = curves_.curves()[i].edge_energy_at(time_ns);
    if (edges[i]) --missing_edge_count;
  }
}

void WindowEngine::store_settled_edges(WindowId window, WindowState& state) {
  if (state.missing_begin_edge_count > 0)
    store_edge_energies(state.begin_ns, state.begin_edges, state.missing_begin_edge_count, false);
  if (state.end_ns == 0) state.end_ns = window_table_.end_ns(window);
  if (state.end_ns == 0) return;
  const bool has_settling_timed_out = monotonic_ns() > state.end_ns + kMaxSettlingTime_ns;
  if (has_settling_timed_out)
    store_edge_energies(state.begin_ns, state.begin_edges, state.missing_begin_edge_count, true);
  store_edge_energies(state.end_ns, state.end_edges, state.missing_end_edge_count, has_settling_timed_out);
  if (has_settling_timed_out) state.missing_begin_edge_count = state.missing_end_edge_count = 0;
  if (state.missing_begin_edge_count == 0 && state.missing_end_edge_count == 0) window_table_.mark_complete(window);
}

bool WindowEngine::is_settled(const WindowState& state) const {
  for (std::size_t i = 0; i < curves_.curves().size(); ++i) {
    if (!state.end_edges[i] && !is_edge_settled(curves_.curves()[i], state.end_ns)) return false;
  }
  return true;
}

Result<WindowResult> WindowEngine::result(WindowId window, WaitPolicy wait_policy) {
  const std::int64_t deadline_ns = monotonic_ns() + kMaxResultWait_ns;
  bool waiting = false;
  Result<WindowResult> answer =
      Error{ErrorCode::not_found, "this window does not exist", "it was freed or never begun"};
  while (true) {
    const std::uint32_t passes = engine_pass_count_.load(std::memory_order_acquire);
    {
      const std::lock_guard lock(lock_);
      auto state_entry = window_states_.find(window);
      // All edges of a finished window are stored: it needs no update_windows().
      if (state_entry == window_states_.end() ||
          state_entry->second.missing_begin_edge_count + state_entry->second.missing_end_edge_count > 0) {
        update_windows();
        state_entry = window_states_.find(window);
      }
      if (state_entry == window_states_.end() || !window_table_.is_alive(window)) break;
      WindowState& state = state_entry->second;
      if (state.end_ns == 0) state.end_ns = window_table_.end_ns(window);
      if (wait_policy == WaitPolicy::wait && state.end_ns == 0) {
        answer = Error{ErrorCode::usage, "this window has not ended", "end it before waiting for its energy"};
        break;
      }
      const bool is_wait_over = wait_policy == WaitPolicy::none || is_settled(state) || monotonic_ns() >= deadline_ns;
      if (is_wait_over || stop_requested_.load()) {
        answer = compute_window_result(window, state);
        break;
      }
    }
    if (!waiting) {
      waiting = true;
      is_read_requested_.store(true);
      waiting_callers_.fetch_add(1);
      wake_engine();
    }
    wait_for_word_change(engine_pass_count_, passes, deadline_ns);
  }
  if (waiting) waiting_callers_.fetch_sub(1);
  return answer;
}

WindowResult WindowEngine::compute_window_result(WindowId window, const WindowState& state) const {
  WindowResult result{.window = window, .begin_ns = state.begin_ns, .end_ns = state.end_ns, .energy = {}};
  result.is_settled = state.end_ns != 0 && is_settled(state);
  if (result.end_ns == 0) result.end_ns = monotonic_ns();
  std::vector<ChannelEnergy> energies;
  for (std::size_t i = 0; i < curves_.curves().size(); ++i) {
    const EnergyCurve& curve = curves_.curves()[i];
    const auto begin = state.begin_edges[i] ? state.begin_edges[i] : curve.edge_energy_at(state.begin_ns);
    const auto end = state.end_edges[i] ? state.end_edges[i] : curve.edge_energy_at(result.end_ns);
    if (begin && end) {
      energies.push_back(curve.energy_between(*begin, *end, (*state.tallies_at_begin)[i]));
      // The next update of the counter may still come, so the window is not yet known to be too short.
      if (energies.back().missing_reason == "too-short") energies.back().missing_reason = "no-step";
    } else {
      const ReadCode code = curve.tally().last_read_code;
      energies.push_back({.channel = curve.channel(),
                          .missing_reason = code == ReadCode::ok ? "no-reading" : std::string(to_string(code))});
    }
  }
  for (const SensorStatus& status : sensor_statuses_) {
    for (const UnreadableChannel& unreadable : status.unreadable) {
      energies.push_back({.channel = unreadable.channel, .missing_reason = unreadable.reason});
    }
  }
  result.energy = make_domain_table(energies, result.elapsed_s(), cross_checks_estimates_);
  for (const ChannelEnergy& energy : energies) result.energy.diagnostics.add_all(describe_faults(energy));
  return result;
}

}  // namespace joulemap::sampling

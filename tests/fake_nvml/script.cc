// SPDX-License-Identifier: Apache-2.0
#include "fake_nvml/script.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace joulemap::fake_nvml {
namespace {

constexpr double kCounterAtOrigin_j = 1e6;
constexpr double kAverageWindow_s = 1.0;
constexpr double kHistoryWindow_s = 0.01;

double integrate_points(const std::vector<PowerCurve::Point>& points, double until_s) {
  double joules = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double to_s = i + 1 < points.size() ? std::min(points[i + 1].from_s, until_s) : until_s;
    if (to_s > points[i].from_s) joules += (to_s - points[i].from_s) * points[i].watts;
  }
  return joules;
}

// Hardware noise: it changes an average at every update, as on real GPUs.
std::uint64_t noisy_power_mw(double watts, double update_s) {
  const double noise_mw = std::fmod(std::abs(update_s) * 7919, 41) - 20;
  return static_cast<std::uint64_t>(std::max(std::round(watts * 1000 + noise_mw), 0.0));
}

bool parse_power(std::istringstream& words, PowerCurve& curve) {
  curve = {};
  curve.points.clear();
  for (std::string word; words >> word;) {
    if (word == "repeat") {
      double repeat_period_s = 0;
      if (!(words >> repeat_period_s)) return false;
      curve.repeat_period_s = repeat_period_s;
      continue;
    }
    PowerCurve::Point point;
    char colon = 0;
    std::istringstream pair(word);
    if (!(pair >> point.from_s >> colon >> point.watts) || colon != ':') return false;
    curve.points.push_back(point);
  }
  return !curve.points.empty();
}

bool read_rest_of_line(std::istringstream& words, std::string& remaining_line) {
  return static_cast<bool>(std::getline(words >> std::ws, remaining_line));
}

bool parse_scaled_value(std::istringstream& words, double scale, double& value) {
  if (!(words >> value)) return false;
  value *= scale;
  return true;
}

bool read_time_s(std::istringstream& words, std::optional<double>& time_s) {
  double value = 0;
  if (!(words >> value)) return false;
  time_s = value;
  return true;
}

bool parse_names(std::istringstream& words, std::set<std::string>& names) {
  for (std::string name; words >> name;) names.insert(name);
  return true;
}

bool parse_load(std::istringstream& words, std::optional<ScriptedDevice::ScriptedLoad>& load) {
  ScriptedDevice::ScriptedLoad scripted_load;
  if (!(words >> scripted_load.log_path >> scripted_load.idle_w >> scripted_load.context_w >> scripted_load.loaded_w))
    return false;
  load = scripted_load;
  return true;
}

bool read_process(std::istringstream& words, std::vector<ScriptedDevice::Process>& processes) {
  ScriptedDevice::Process process;
  if (!(words >> process.pid >> process.sm_percent)) return false;
  if (!(words >> process.from_s)) process.from_s = -1e9;  // since always
  processes.push_back(process);
  return true;
}

bool parse_sensor_model(const std::string& verb, std::istringstream& words, ScriptedDevice& device) {
  if (verb == "counter_lag_ms") return parse_scaled_value(words, 1e-3, device.counter_lag_s);
  if (verb == "instant_window_ms") return parse_scaled_value(words, 1e-3, device.instant_window_s);
  if (verb == "instant_gain") return parse_scaled_value(words, 1, device.instant_gain);
  if (verb == "history_memory_ms") return parse_scaled_value(words, 1e-3, device.history_time_constant_s.emplace());
  if (verb == "load") return parse_load(words, device.load);
  if (verb == "sleep") return device.load && static_cast<bool>(words >> device.load->sleep_s >> device.load->sleep_w);
  return false;
}

bool parse_device_statement(const std::string& verb, std::istringstream& words, ScriptedDevice& device) {
  if (verb == "name") return read_rest_of_line(words, device.name);
  if (verb == "pci") return read_rest_of_line(words, device.pci_bus_id);
  if (verb == "power") return parse_power(words, device.power);
  if (verb == "counter_period_ms") return parse_scaled_value(words, 1e-3, device.counter_period_s);
  if (verb == "counter_phase_ms") return parse_scaled_value(words, 1e-3, device.counter_phase_s);
  if (verb == "power_phase_ms") return parse_scaled_value(words, 1e-3, device.power_phase_s);
  if (verb == "counter_spin_us") return parse_scaled_value(words, 1e-6, device.counter_spin_s);
  if (verb == "unsupported") return parse_names(words, device.unsupported);
  if (verb == "denied") return parse_names(words, device.denied);
  if (verb == "lost_when") return read_rest_of_line(words, device.lost_trigger_path);
  if (verb == "lost_at") return read_time_s(words, device.lost_at_s);
  if (verb == "fail_at") return read_time_s(words, device.fail_at_s);
  if (verb == "absent") return static_cast<bool>(words >> device.absent);
  if (verb == "mig") return read_rest_of_line(words, device.mig_uuid);
  if (verb == "process") return read_process(words, device.processes);
  if (verb == "unlisted") {
    const bool is_read = read_process(words, device.processes);
    if (is_read) device.processes.back().is_listed = false;
    return is_read;
  }
  if (verb == "clients") return read_rest_of_line(words, device.clients_folder);
  if (verb == "throttle") return static_cast<bool>(words >> device.throttle_reasons);
  if (verb == "virtualization") return static_cast<bool>(words >> device.virtualization_mode);
  return parse_sensor_model(verb, words, device);
}

bool parse_statement(const std::string& verb, std::istringstream& words, Script& script) {
  if (verb == "origin") return read_time_s(words, script.origin_s);
  if (verb == "driver") return read_rest_of_line(words, script.driver);
  if (verb == "init_error") return static_cast<bool>(words >> script.init_error);
  if (verb == "device") return read_rest_of_line(words, script.devices.emplace_back().uuid);
  return !script.devices.empty() && parse_device_statement(verb, words, script.devices.back());
}

}  // namespace

double PowerCurve::compute_joules_until(double time_s) const {
  if (!repeat_period_s) return time_s < 0 ? time_s * points.front().watts : integrate_points(points, time_s);
  const double rounds = std::floor(time_s / *repeat_period_s);
  return rounds * integrate_points(points, *repeat_period_s) +
         integrate_points(points, time_s - rounds * *repeat_period_s);
}

double PowerCurve::exponential_average_w(double time_s, double time_constant_s) const {
  double shown_w = points.front().watts;
  for (std::size_t i = 0; i < points.size() && points[i].from_s < time_s; ++i) {
    const double to_s = i + 1 < points.size() ? std::min(points[i + 1].from_s, time_s) : time_s;
    shown_w = points[i].watts + (shown_w - points[i].watts) * std::exp(-(to_s - points[i].from_s) / time_constant_s);
  }
  return shown_w;
}

double ScriptedDevice::last_update_s(double time_s, double phase_s) const {
  return phase_s + std::floor((time_s - phase_s) / counter_period_s) * counter_period_s;
}

std::uint64_t ScriptedDevice::counter_mj(double time_s) const {
  const double joules =
      kCounterAtOrigin_j + power.compute_joules_until(last_update_s(time_s, counter_phase_s) - counter_lag_s);
  return static_cast<std::uint64_t>(joules * 1000);
}

std::uint64_t ScriptedDevice::instant_mw(double time_s) const {
  const double update_s = last_update_s(time_s, power_phase_s);
  return noisy_power_mw(instant_gain * power.mean_w(update_s - instant_window_s, update_s), update_s);
}

std::uint64_t ScriptedDevice::average_mw(double time_s) const {
  const double update_s = last_update_s(time_s, power_phase_s);
  return noisy_power_mw(power.mean_w(update_s - kAverageWindow_s, update_s), update_s);
}

std::uint64_t ScriptedDevice::history_mw(double time_s) const {
  if (history_time_constant_s)
    return noisy_power_mw(power.exponential_average_w(time_s, *history_time_constant_s), time_s);
  return noisy_power_mw(power.mean_w(time_s - kHistoryWindow_s, time_s), time_s);
}

std::optional<Script> parse_script(const std::string& text) {
  Script script;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string verb;
    if (!(words >> verb)) continue;
    if (!parse_statement(verb, words, script)) return std::nullopt;
  }
  return script;
}

}  // namespace joulemap::fake_nvml

// SPDX-License-Identifier: Apache-2.0
#include "report/text/calibrate_text.h"

#include <fmt/format.h>

#include <cmath>

#include "report/text/diagnostics_text.h"
#include "report/text/energy_rows.h"

namespace joulemap::report {
namespace {

std::string optional_duration_text(const std::optional<double>& time_s) {
  if (!time_s) return "-";
  if (std::abs(*time_s) < 1e-3) return fmt::format("{} us", format_number(*time_s * 1e6, 3));
  if (*time_s < 1) return fmt::format("{} ms", format_number(*time_s * 1e3, 3));
  return fmt::format("{} s", format_number(*time_s, 3));
}

std::string optional_power_text(const std::optional<double>& watts) {
  return watts ? fmt::format("{} W", format_number(*watts)) : "-";
}

std::string deviation_percent_text(double factor) { return fmt::format("{:+.2f} %", 100 * (factor - 1)); }

std::string sensor_averaging_text(const ChannelCalibration& calibration) {
  if (calibration.window_s) return fmt::format("mean of {}", optional_duration_text(calibration.window_s));
  if (calibration.time_constant_s) return fmt::format("tau {}", optional_duration_text(calibration.time_constant_s));
  return calibration.lag_s ? "unfiltered" : "-";
}

// How long the power of the GPU takes to fall after the load and after the context; empty if unknown.
std::string power_fall_text(const ChannelCalibration& calibration) {
  std::string out;
  const auto add_line = [&](const char* event_text, const std::optional<double>& time_s,
                            const std::optional<double>& watts) {
    if (!time_s || *time_s <= 0) return;
    const std::string power_note = watts ? fmt::format(" (mean {})", optional_power_text(watts)) : "";
    out += fmt::format("  {} settles within {}{} after {}\n", calibration.channel, optional_duration_text(time_s),
                       power_note, event_text);
  };
  add_line("the load ends", calibration.settle_s, calibration.settle_w);
  add_line("the context is destroyed", calibration.sleep_s, calibration.sleep_w);
  return out;
}

// The channel with the shortest update period among those that measured how the power falls; null if there is none.
const ChannelCalibration* find_fastest_channel(const CalibrateResult& result) {
  const ChannelCalibration* fastest_channel = nullptr;
  for (const ChannelCalibration& calibration : result.findings) {
    if (!calibration.refresh_s || (!calibration.settle_s && !calibration.sleep_s)) continue;
    if (fastest_channel == nullptr || *calibration.refresh_s < *fastest_channel->refresh_s)
      fastest_channel = &calibration;
  }
  return fastest_channel;
}

std::string gpu_load_table(const CalibrateResult& result) {
  std::string out = fmt::format("\n  {:<22} {:>9} {:>16} {:>16} {:>11} {:>10}\n", "under load", "lag", "90 % interval",
                                "response", "active idle", "loaded");
  for (const ChannelCalibration& calibration : result.findings) {
    if (!calibration.lag_s && !calibration.loaded_w) continue;
    const std::string lag_interval = calibration.lag_low_s && calibration.lag_high_s
                                         ? fmt::format("{} .. {} ms", format_number(*calibration.lag_low_s * 1e3, 2),
                                                       format_number(*calibration.lag_high_s * 1e3, 2))
                                         : "-";
    out += fmt::format("  {:<22} {:>9} {:>16} {:>16} {:>11} {:>10}\n", calibration.channel,
                       optional_duration_text(calibration.lag_s), lag_interval, sensor_averaging_text(calibration),
                       optional_power_text(calibration.active_idle_w), optional_power_text(calibration.loaded_w));
  }
  if (const ChannelCalibration* fastest_channel = find_fastest_channel(result))
    out += power_fall_text(*fastest_channel);
  for (const ChannelCalibration& calibration : result.findings) {
    if (calibration.gain) {
      out += fmt::format("  {} reads {} relative to {} (+- {:.2f} %)\n", calibration.channel,
                         deviation_percent_text(*calibration.gain), calibration.gain_reference_channel,
                         100 * calibration.gain_spread.value_or(0));
    }
  }
  return out;
}

}  // namespace

std::string calibrate_text(const CalibrateResult& result) {
  std::string out = fmt::format("\n Sensors observed for {} s\n\n", format_number(result.observation_time_s, 3));
  out += fmt::format("  {:<22} {:>9} {:>9} {:>9} {:>9} {:>10}\n", "channel", "update", "+-", "read", "CPU", "idle");
  for (const ChannelCalibration& calibration : result.findings) {
    const std::string idle = calibration.idle_w ? fmt::format("{} W", format_number(*calibration.idle_w)) : "-";
    out += fmt::format(
        "  {:<22} {:>9} {:>9} {:>9} {:>9} {:>10}\n", calibration.channel, optional_duration_text(calibration.refresh_s),
        optional_duration_text(calibration.refresh_spread_s), optional_duration_text(calibration.read_wall_s),
        optional_duration_text(calibration.read_cpu_s), idle);
  }
  if (!result.loaded_domains.empty()) out += gpu_load_table(result);
  for (const ChannelCalibration& calibration : result.findings) {
    if (!calibration.phase_s) continue;
    out += fmt::format("  {} updates {} after {}\n", calibration.channel, optional_duration_text(calibration.phase_s),
                       calibration.phase_reference_channel);
  }
  if (!result.calibration_file.empty()) out += fmt::format("\n saved to {}\n", result.calibration_file);
  const std::string notes = diagnostics_text(result.diagnostics);
  if (!notes.empty()) out += "\n" + notes;
  return out + "\n";
}

}  // namespace joulemap::report

// SPDX-License-Identifier: Apache-2.0
#include "report/json/calibrate_json.h"
#include "model_json/diagnostics_json.h"

#include "report/json/sampler_cost_json.h"

namespace joulemap::report {

void write_calibrations(formats::JsonWriter& json, std::span<const ChannelCalibration> calibrations) {
  json.key("calibration").begin_array();
  for (const ChannelCalibration& calibration : calibrations) {
    json.begin_object()
        .member("channel", calibration.channel)
        .text_or_null("device", calibration.device)
        .text_or_null("driver", calibration.driver)
        .member("refresh_s", calibration.refresh_s)
        .member("refresh_spread_s", calibration.refresh_spread_s)
        .member("phase_s", calibration.phase_s)
        .text_or_null("phase_of", calibration.phase_reference_channel)
        .member("read_wall_s", calibration.read_wall_s)
        .member("read_cpu_s", calibration.read_cpu_s)
        .member("idle_w", calibration.idle_w)
        .member("made_unix_ns", calibration.created_unix_ns)
        .member("lag_s", calibration.lag_s)
        .member("lag_low_s", calibration.lag_low_s)
        .member("lag_high_s", calibration.lag_high_s)
        .member("window_s", calibration.window_s)
        .member("memory_s", calibration.time_constant_s)
        .member("active_idle_w", calibration.active_idle_w)
        .member("loaded_w", calibration.loaded_w)
        .member("settle_s", calibration.settle_s)
        .member("settle_w", calibration.settle_w)
        .member("sleep_s", calibration.sleep_s)
        .member("sleep_w", calibration.sleep_w)
        .member("gain", calibration.gain)
        .member("gain_spread", calibration.gain_spread)
        .text_or_null("gain_of", calibration.gain_reference_channel)
        .end_object();
  }
  json.end_array();
}

std::string calibrate_json(const CalibrateResult& result) {
  formats::JsonWriter json;
  json.begin_object().member("schema", "joulemap.calibrate/1").member("watched_s", result.observation_time_s);
  write_calibrations(json, result.findings);
  json.key("loaded").begin_array();
  for (const std::string& domain : result.loaded_domains) json.value(domain);
  json.end_array();
  json.text_or_null("kept_in", result.calibration_file);
  write_sampler_costs(json, result.samplers);
  write_diagnostics(json, result.diagnostics);
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report

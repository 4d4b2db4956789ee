// SPDX-License-Identifier: Apache-2.0
#include "report/calibrate_json.h"

#include "report/diagnostics_json.h"
#include "report/sampler_cost_json.h"

namespace joulemap::report {

void write_calibrations(formats::JsonWriter& json, std::span<const ChannelCalibration> calibrations) {
  json.key("calibration").begin_array();
  for (const ChannelCalibration& known : calibrations) {
    json.begin_object()
        .member("channel", known.channel)
        .text_or_null("device", known.device)
        .text_or_null("driver", known.driver)
        .member("refresh_s", known.refresh_s)
        .member("refresh_spread_s", known.refresh_spread_s)
        .member("phase_s", known.phase_s)
        .text_or_null("phase_of", known.phase_of)
        .member("read_wall_s", known.read_wall_s)
        .member("read_cpu_s", known.read_cpu_s)
        .member("idle_w", known.idle_w)
        .member("made_unix_ns", known.made_unix_ns)
        .end_object();
  }
  json.end_array();
}

std::string calibrate_json(const CalibrateResult& result) {
  formats::JsonWriter json;
  json.begin_object().member("schema", "joulemap.calibrate/1").member("watched_s", result.watched_s);
  write_calibrations(json, result.findings);
  json.text_or_null("kept_in", result.kept_in);
  write_sampler_costs(json, result.samplers);
  write_diagnostics(json, result.diagnostics);
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report

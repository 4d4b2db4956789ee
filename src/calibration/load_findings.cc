// SPDX-License-Identifier: Apache-2.0
#include "calibration/load_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/quadrature.h"

namespace joulemap::calibration {
namespace {

// Sensors of one board share their reference, so their agreement does not prove them right. The uncertainty of a gain
// is never below this (docs/explanation/attribution.md).
constexpr double kMinRelativeGainSd = 0.005;

// A channel that averages longer than this cannot show how fast the power falls after a load.
constexpr double kMaxAveragingDelay_s = 0.3;

class ChannelLoadAnalysis {
 public:
  ChannelLoadAnalysis(const GpuLoadChannel& gpu_load_channel, const LoadPhases& phases, Diagnostics& diagnostics)
      : gpu_load_channel_(gpu_load_channel),
        load_phases_(phases),
        sensor_response_(find_load_response(gpu_load_channel.channel.kind, gpu_load_channel.published_values, phases)) {
    if (sensor_response_ && sensor_response_->is_lag_identified) {
      store_load_response();
    } else {
      diagnostics.add({"lag_not_found", 1,
                       fmt::format("{}: {}; its lag is not stored", gpu_load_channel.channel.name,
                                   sensor_response_ ? "the lag is not identifiable" : "too few values"),
                       "calibrate again while nothing else runs"});
    }
    store_power_levels();
  }

  const std::optional<LoadResponse>& load_response() const { return sensor_response_; }

 private:
  ChannelCalibration& channel_calibration() const { return *gpu_load_channel_.finding; }
  double period_s() const { return channel_calibration().refresh_s.value_or(gpu_load_channel_.channel.refresh_s); }
  double total_delay_s() const {
    return has_identified_lag() ? std::max(sensor_response_->lag_s, 0.0) + averaging_delay_s() : period_s();
  }
  double averaging_delay_s() const { return has_identified_lag() ? sensor_response_->fall_time_s(period_s()) : 0; }
  bool has_identified_lag() const { return sensor_response_ && sensor_response_->is_lag_identified; }
  std::optional<double> mean_phase_power_w(const LoadSpan& span) const {
    return mean_published_w(gpu_load_channel_.channel.kind, gpu_load_channel_.published_values, span, total_delay_s());
  }

  // Mean power that the channel shows at the end of a phase: over its second half, or only after the channel's delay if
  // that is longer (a mean over a second takes most of a phase of two).
  std::optional<double> mean_phase_end_power_w(const LoadSpan& span) const {
    const auto delay_ns = static_cast<std::int64_t>(total_delay_s() * 1e9);
    const LoadSpan settled_span{span.begin_ns + std::max(span.length_ns() / 2, delay_ns), span.end_ns};
    return mean_published_w(gpu_load_channel_.channel.kind, gpu_load_channel_.published_values, settled_span, 0);
  }

  void store_load_response() {
    channel_calibration().lag_s = sensor_response_->lag_s;
    // The times of the values are known only as well as the reads allow.
    const double lag_lower_error_s =
        add_in_quadrature(sensor_response_->lag_s - sensor_response_->lag_low_s, gpu_load_channel_.time_uncertainty_s);
    const double lag_upper_error_s =
        add_in_quadrature(sensor_response_->lag_high_s - sensor_response_->lag_s, gpu_load_channel_.time_uncertainty_s);
    channel_calibration().lag_low_s = sensor_response_->lag_s - lag_lower_error_s;
    channel_calibration().lag_high_s = sensor_response_->lag_s + lag_upper_error_s;
    if (sensor_response_->averaging == SensorAveraging::moving_average)
      channel_calibration().window_s = sensor_response_->averaging_time_s;
    if (sensor_response_->averaging == SensorAveraging::exponential_average)
      channel_calibration().time_constant_s = sensor_response_->averaging_time_s;
  }
  void store_power_levels() {
    // Replaces the idle power of the idle observation: this one is computed between counter updates, which is more
    // accurate than between the first and the last reading.
    if (const std::optional<double> idle_w = mean_phase_power_w(load_phases_.idle))
      channel_calibration().idle_w = idle_w;
    channel_calibration().active_idle_w = mean_phase_end_power_w(load_phases_.after_load);
    channel_calibration().loaded_w = mean_phase_end_power_w(load_phases_.full_load);
    store_power_decay(load_phases_.after_load, channel_calibration().active_idle_w, channel_calibration().loaded_w,
                      channel_calibration().settle_s, channel_calibration().settle_w);
    store_power_decay(load_phases_.idle_after_context, channel_calibration().idle_w,
                      channel_calibration().active_idle_w, channel_calibration().sleep_s,
                      channel_calibration().sleep_w);
  }
  void store_power_decay(const LoadSpan& span, std::optional<double> low_w, std::optional<double> high_w,
                         std::optional<double>& duration_s, std::optional<double>& mean_w) {
    if (!low_w || !high_w || *high_w <= *low_w || !has_identified_lag() || averaging_delay_s() > kMaxAveragingDelay_s)
      return;
    const auto sensor_fall_time_s =
        time_to_fall_s(gpu_load_channel_.channel.kind, gpu_load_channel_.published_values, span, *low_w, *high_w);
    if (!sensor_fall_time_s) return;
    // A sensor with lag and averaging falls later than the power it measures.
    duration_s = std::max(*sensor_fall_time_s - total_delay_s(), 0.0);
    const auto end_ns = span.begin_ns + static_cast<std::int64_t>((*duration_s + total_delay_s()) * 1e9);
    if (*duration_s > 0)
      mean_w = mean_published_w(gpu_load_channel_.channel.kind, gpu_load_channel_.published_values,
                                {span.begin_ns, end_ns}, total_delay_s());
  }

  const GpuLoadChannel& gpu_load_channel_;
  const LoadPhases& load_phases_;
  std::optional<LoadResponse> sensor_response_;
};

void store_relative_gains(std::vector<GpuLoadChannel>& channels,
                          const std::vector<ChannelLoadAnalysis>& channel_analyses) {
  const auto is_counter = [](const GpuLoadChannel& gpu_load_channel) {
    return gpu_load_channel.channel.kind == ChannelKind::counter;
  };
  const auto counter = std::find_if(channels.begin(), channels.end(), is_counter);
  if (counter == channels.end()) return;
  const auto& reference = channel_analyses[static_cast<std::size_t>(counter - channels.begin())].load_response();
  if (!reference || !reference->is_lag_identified || reference->mean_w <= 0) return;
  double squares = 0;
  double count = 0;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const auto& response = channel_analyses[i].load_response();
    if (is_counter(channels[i]) || !response || !response->is_lag_identified) continue;
    ChannelCalibration& finding = *channels[i].finding;
    finding.gain = response->mean_w / reference->mean_w;
    finding.gain_spread =
        add_in_quadrature(response->mean_standard_error_w, reference->mean_standard_error_w) / reference->mean_w;
    finding.gain_reference_channel = counter->channel.name;
    squares += (*finding.gain - 1) * (*finding.gain - 1);
    ++count;
  }
  // When the gains of two channels differ, either may be wrong: the counter gets the root mean square difference,
  // divided by sqrt(2).
  if (count > 0) counter->finding->gain_spread = std::max(std::sqrt(squares / count / 2), kMinRelativeGainSd);
}

}  // namespace

void add_load_findings(std::vector<GpuLoadChannel>& channels, const LoadPhases& phases, Diagnostics& diagnostics) {
  std::vector<ChannelLoadAnalysis> channel_analyses;
  channel_analyses.reserve(channels.size());
  for (const GpuLoadChannel& gpu_load_channel : channels)
    channel_analyses.emplace_back(gpu_load_channel, phases, diagnostics);
  store_relative_gains(channels, channel_analyses);
}

}  // namespace joulemap::calibration

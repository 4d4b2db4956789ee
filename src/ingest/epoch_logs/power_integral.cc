// SPDX-License-Identifier: Apache-2.0
#include "ingest/epoch_logs/power_integral.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"

namespace joulemap::ingest {

PowerIntegral::PowerIntegral(const PowerLog& log, std::uint32_t channel) {
  const std::int64_t origin = origin_ns(log);
  for (const Sample& sample : log.samples) {
    if (sample.channel != channel || sample.reading.code != ReadCode::ok) continue;
    const double time_s = seconds(sample.reading.time_ns() - origin);
    const double watts = static_cast<double>(sample.reading.raw) * log.channels[channel].scale;
    const double interval_s = times_s_.empty() ? 0 : time_s - times_s_.back();
    cumulative_energies_j_.push_back(cumulative_energies_j_.empty()
                                         ? 0
                                         : cumulative_energies_j_.back() + interval_s * (powers_w_.back() + watts) / 2);
    times_s_.push_back(time_s);
    powers_w_.push_back(watts);
  }
}

std::int64_t PowerIntegral::origin_ns(const PowerLog& log) {
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  for (const Sample& sample : log.samples) first_ns = std::min(first_ns, sample.reading.before_ns);
  return log.samples.empty() ? 0 : first_ns;
}

double PowerIntegral::cumulative_energy_j(double time_s) const {
  if (time_s <= times_s_.front()) return (time_s - times_s_.front()) * powers_w_.front();
  if (time_s >= times_s_.back()) return cumulative_energies_j_.back() + (time_s - times_s_.back()) * powers_w_.back();
  const auto next_sample_index =
      static_cast<std::size_t>(std::upper_bound(times_s_.begin(), times_s_.end(), time_s) - times_s_.begin());
  const std::size_t previous_sample_index = next_sample_index - 1;
  const double since_s = time_s - times_s_[previous_sample_index];
  const double step_s = times_s_[next_sample_index] - times_s_[previous_sample_index];
  const double interpolated_w =
      powers_w_[previous_sample_index] +
      (powers_w_[next_sample_index] - powers_w_[previous_sample_index]) * (step_s > 0 ? since_s / step_s : 0);
  return cumulative_energies_j_[previous_sample_index] +
         since_s * (powers_w_[previous_sample_index] + interpolated_w) / 2;
}

double PowerIntegral::energy_j(double from_s, double to_s) const {
  return cumulative_energy_j(to_s) - cumulative_energy_j(from_s);
}

}  // namespace joulemap::ingest

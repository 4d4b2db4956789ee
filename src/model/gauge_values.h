// SPDX-License-Identifier: Apache-2.0
//
// Gauges of GPUs over an interval of a run, such as an epoch: mean utilisation, highest memory and temperature. The
// importers and the runner of experiments compute them in the same way. Of several GPUs, utilisation is the mean and
// the others are those of the highest GPU. Plain data and pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace joulemap {

struct Gauge {
  std::string_view name;     // in rows and tables
  std::string_view channel;  // in recordings and power logs, without the prefix "gpu0-"
  std::string_view unit;
  bool is_mean;   // else the highest value
  double factor;  // from the unit of the channel
};
inline constexpr std::array<Gauge, 4> kGauges = {{
    {"gpu_utilization", "utilization", "%", true, 1},
    {"memory_utilization", "memory-utilization", "%", true, 1},
    {"memory_used", "memory-used", "MiB", false, 1.0 / (1 << 20)},
    {"temperature", "temperature", "degC", false, 1},
}};
using GaugeValues = std::array<std::optional<double>, kGauges.size()>;

// Index in kGauges of a channel of a GPU, such as "gpu0-temperature" or "node1/gpu0-temperature"; none for others.
constexpr std::optional<std::size_t> gauge_index_of_channel(std::string_view channel) {
  const std::size_t host = channel.rfind('/');
  if (host != std::string_view::npos) channel.remove_prefix(host + 1);
  if (!channel.starts_with("gpu")) return std::nullopt;
  const std::size_t dash = channel.find('-');
  if (dash == std::string_view::npos || channel.find_first_not_of("0123456789", 3) != dash) return std::nullopt;
  for (std::size_t i = 0; i < kGauges.size(); ++i) {
    if (channel.substr(dash + 1) == kGauges[i].channel) return i;
  }
  return std::nullopt;
}

// Sums up the values of one interval.
class GaugeAccumulator {
 public:
  // `value`: in the unit of the channel; `weight`: of a mean, such as a time or a number of samples.
  void add(std::size_t gauge, double value, double weight) {
    value *= kGauges[gauge].factor;
    sums_[gauge] += value * weight;
    weights_[gauge] += weight;
    highest_values_[gauge] = std::max(highest_values_[gauge].value_or(value), value);
  }
  GaugeValues values() const {
    GaugeValues values;
    for (std::size_t i = 0; i < kGauges.size(); ++i) {
      if (!kGauges[i].is_mean) values[i] = highest_values_[i];
      if (kGauges[i].is_mean && weights_[i] > 0) values[i] = sums_[i] / weights_[i];
    }
    return values;
  }

 private:
  std::array<double, kGauges.size()> sums_{};
  std::array<double, kGauges.size()> weights_{};
  GaugeValues highest_values_{};
};

}  // namespace joulemap

// SPDX-License-Identifier: Apache-2.0
#include "report/json/sampler_cost_json.h"

#include "base/clock.h"

namespace joulemap::report {

void write_sampler_costs(formats::JsonWriter& json, std::span<const SamplerCost> costs) {
  const auto microseconds = [](std::int64_t time_ns) { return static_cast<double>(time_ns) / 1e3; };
  json.key("sensors").begin_array();
  for (const SamplerCost& cost : costs) {
    json.begin_object()
        .member("sensor", cost.sensor)
        .member("reads", cost.reads)
        .member("cpu_s", seconds(cost.cpu_ns))
        .member("missed_ticks", cost.missed_ticks)
        .member("lost_samples", cost.lost_samples);
    json.key("late_us")
        .begin_object()
        .member("p50", microseconds(cost.lateness.percentile_ns(0.5)))
        .member("p90", microseconds(cost.lateness.percentile_ns(0.9)))
        .member("p99", microseconds(cost.lateness.percentile_ns(0.99)))
        .member("max", microseconds(cost.lateness.longest_ns()))
        .end_object()
        .end_object();
  }
  json.end_array();
}

}  // namespace joulemap::report

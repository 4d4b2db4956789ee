// SPDX-License-Identifier: Apache-2.0
//
// Cost and timeliness of reading each sensor, for the JSON of stat, record and calibrate.
#pragma once

#include <span>

#include "formats/json_writer.h"
#include "model/sampler_cost.h"

namespace joulemap::report {

// Writes the member "sensors": [{"sensor", "reads", "cpu_s", "missed_ticks", "lost_samples", "late_us"}]. "late_us":
// {"p50", "p90", "p99", "max"} is the time from the deadline of a read to its start, in microseconds.
void write_sampler_costs(formats::JsonWriter& json, std::span<const SamplerCost> costs);

}  // namespace joulemap::report

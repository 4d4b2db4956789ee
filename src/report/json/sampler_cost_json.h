// SPDX-License-Identifier: Apache-2.0
//
// Read cost and timing of each sensor, part of every JSON report.
#pragma once

#include <span>

#include "formats/json_writer.h"
#include "model/sampler_cost.h"

namespace joulemap::report {

// Writes the member "sensors": [{"sensor", "reads", "cpu_s", "missed_ticks", "lost_samples", "late_us": {"p50", "p90",
// "p99", "max"}}].
void write_sampler_costs(formats::JsonWriter& json, std::span<const SamplerCost> costs);

}  // namespace joulemap::report

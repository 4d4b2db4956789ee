// SPDX-License-Identifier: Apache-2.0
//
// What reading each sensor cost and how punctual it was, as every JSON report has it.
#pragma once

#include <span>

#include "formats/json_writer.h"
#include "model/sampler_cost.h"

namespace joulemap::report {

// The member "sensors": [{"sensor", "reads", "cpu_s", "missed_ticks", "lost_samples", "late_us": {"p50", "p90", "p99",
// "max"}}].
void write_sampler_costs(formats::JsonWriter& json, std::span<const SamplerCost> costs);

}  // namespace joulemap::report

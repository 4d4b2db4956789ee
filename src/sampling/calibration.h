// SPDX-License-Identifier: Apache-2.0
//
// Finds out how the sensors of this machine behave, by watching them closely for a few seconds: how often each value is
// renewed, when, what a read costs, and what is drawn while nothing runs. Main thread; the sampler's threads read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/calibrate_result.h"
#include "sampling/sampler.h"

namespace joulemap::sampling {

// Watches for `duration_ns`. The sampler must not run yet, and does not afterwards.
CalibrateResult calibrate(Sampler& sampler, std::int64_t duration_ns);

}  // namespace joulemap::sampling

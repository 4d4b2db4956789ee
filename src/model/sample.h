// SPDX-License-Identifier: Apache-2.0
//
// Sample: a reading and the channel it belongs to, as the sampler hands them out and a recording keeps them.
#pragma once

#include <cstdint>

#include "model/reading.h"

namespace joulemap {

struct Sample {
  std::uint32_t channel = 0;  // its place in the list of channels that goes with the samples
  Reading reading;
};

}  // namespace joulemap

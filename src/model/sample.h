// SPDX-License-Identifier: Apache-2.0
//
// Sample: a reading with its channel. The sampler returns samples, and a recording contains them.
#pragma once

#include <cstdint>

#include "model/reading.h"

namespace joulemap {

struct Sample {
  std::uint32_t channel = 0;  // index in the channel list that accompanies the samples
  Reading reading;
};

}  // namespace joulemap

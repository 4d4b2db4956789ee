// SPDX-License-Identifier: Apache-2.0
//
// Describes the faults of a channel during a window: every unknown wrap range, reset, gap and failed read becomes a
// Diagnostic. It names the file, the effect on the number, and the remedy. Pure. Channels without energy or power are
// ignored: when a GPU is gone, its temperature does not matter.
#pragma once

#include "energy/channel_energy.h"
#include "model/diagnostics.h"

namespace joulemap {

Diagnostics describe_faults(const ChannelEnergy& energy);

}  // namespace joulemap

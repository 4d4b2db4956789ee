// SPDX-License-Identifier: Apache-2.0
//
// What went wrong on a channel during a window, in words: every wrap range that was unknown, every reset, gap and
// read that failed becomes a Diagnostic that names the file, what it means for the number, and what to do. Pure.
// Channels that tell no energy have nothing to say here: of a GPU that is gone its temperature is not what matters.
#pragma once

#include "energy/channel_energy.h"
#include "model/diagnostics.h"

namespace joulemap {

Diagnostics describe_faults(const ChannelEnergy& energy);

}  // namespace joulemap

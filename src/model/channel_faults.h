// SPDX-License-Identifier: Apache-2.0
//
// What went wrong on a channel during a window, in words: every wrap range that was unknown, every reset, gap and
// read that failed becomes a Diagnostic that names the file, what it means for the number, and what to do. Pure. Channels that
// tell no energy have nothing to say: a GPU that is gone is told of once for each of its numbers, not of its temperature.
#pragma once

#include "model/channel_energy.h"
#include "model/diagnostics.h"

namespace joulemap {

Diagnostics describe_faults(const ChannelEnergy& energy);

}  // namespace joulemap

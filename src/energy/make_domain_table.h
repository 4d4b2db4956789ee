// SPDX-License-Identifier: Apache-2.0
//
// Combines channels into domains: one row for each domain, nothing counted twice. Pure functions.
//
//   - A measured channel precedes an estimate, a counter precedes a gauge, an earlier sensor precedes a later one.
//     Other channels with a value become cross-checks, and a diagnostic when they disagree.
//   - An estimate appears only where nothing was measured: not beside a measured domain of the same class (an estimated
//     package-0 beside measured dies), nor below a measured platform.
//   - A channel without energy or power (a temperature, a clock) has no row.
//   - A domain is counted unless a domain that contains it has a value.
#pragma once

#include <span>

#include "energy/channel_energy.h"
#include "model/domain_table.h"

namespace joulemap {

// `channels` in the preference order of their sensors. `check_estimates`: an estimate of a measured domain becomes a
// cross-check instead of being dropped (the user requested estimates by name).
DomainTable make_domain_table(std::span<const ChannelEnergy> channels, double elapsed_s, bool check_estimates = false);

}  // namespace joulemap

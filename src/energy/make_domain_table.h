// SPDX-License-Identifier: Apache-2.0
//
// From channels to domains: one row for each, nothing added twice. Pure functions.
//
//   - A measured channel beats an estimate, a counter beats a gauge, an earlier sensor beats a later one; the others that
//     have a value become cross-checks, and a diagnostic when they disagree.
//   - An estimate appears only where nothing was measured: not beside a measured domain of the same class (an estimated
//     package-0 beside measured dies), nor under a measured platform.
//   - A channel that tells neither energy nor power (a temperature, a clock) makes no row.
//   - A domain is counted unless a domain it is part of has a value.
#pragma once

#include <span>

#include "energy/channel_energy.h"
#include "model/domain_table.h"

namespace joulemap {

// `channels` in the order of preference of their sensors. `check_estimates`: an estimate of a domain that was measured
// becomes a cross-check of it (the user asked for estimates by name) instead of being left out.
DomainTable make_domain_table(std::span<const ChannelEnergy> channels, double elapsed_s, bool check_estimates = false);

}  // namespace joulemap

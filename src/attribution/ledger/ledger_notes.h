// SPDX-License-Identifier: Apache-2.0
//
// Adds diagnostics about the limits of a ledger of one machine: untraced steps that are extrapolated, kernels without
// rows of their own, operations without shapes, unknown counts. Pure.
#pragma once

#include "attribution/ledger/activity_sums.h"
#include "attribution/ledger/ledger.h"

namespace joulemap::attribution {

void add_light_mode_diagnostic(const ActivitySums& sums, Diagnostics& diagnostics);
// Does nothing at levels whose rows are not kernels.
void add_grouped_kernels_diagnostic(const ActivitySums& sums, RowLevel level, Diagnostics& diagnostics);
void add_unknown_tensors_diagnostic(const ActivitySums& sums, bool is_imported, Diagnostics& diagnostics);
// Sets unknown counts to empty and adds a diagnostic.
void clear_unknown_counts(LedgerResult& result);

}  // namespace joulemap::attribution

// SPDX-License-Identifier: Apache-2.0
//
// What a ledger of one machine cannot know, said in its result: which steps stand for others, which operations have no
// shapes, what nobody counted. Pure.
#pragma once

#include "attribution/ledger/activity_sums.h"
#include "attribution/ledger/ledger.h"

namespace joulemap::attribution {

void note_light_mode(const ActivitySums& sums, Diagnostics& diagnostics);
// At levels whose rows are kernels.
void note_grouped_kernels(const ActivitySums& sums, Level level, Diagnostics& diagnostics);
void note_unknown_tensors(const ActivitySums& sums, bool is_imported, Diagnostics& diagnostics);
// Counts that are not known are nothing from then on.
void mark_unknown_counts(LedgerResult& result);

}  // namespace joulemap::attribution

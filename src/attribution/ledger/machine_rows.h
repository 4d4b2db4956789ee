// SPDX-License-Identifier: Apache-2.0
//
// Merges the results of several machines. Pure.
#pragma once

#include <string>
#include <vector>

#include "attribution/ledger/ledger.h"
#include "model/report_result.h"

namespace joulemap::attribution {

// Prepends the machine's prefix to each device name, because devices of different machines have the same numbers.
void prefix_device_names(std::vector<ReportRow>& rows, const std::string& prefix);

// Adds the energies, diagnostics, idle entries and groups of `machine_ledger` to `merged_ledger`, but not the rows.
void merge_ledger_totals(LedgerResult& merged_ledger, LedgerResult machine_ledger);

}  // namespace joulemap::attribution

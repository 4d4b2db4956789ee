// SPDX-License-Identifier: Apache-2.0
//
// Results of several machines as one. Pure.
#pragma once

#include <string>
#include <vector>

#include "attribution/ledger/ledger.h"
#include "model/report_result.h"

namespace joulemap::attribution {

// Two machines give their devices the same numbers: each name gets the machine's prefix.
void name_machine(std::vector<ReportRow>& rows, const std::string& prefix);

// Adds the energies, notes and groups of `one`; rows are not added.
void append(LedgerResult& all, LedgerResult one);

}  // namespace joulemap::attribution

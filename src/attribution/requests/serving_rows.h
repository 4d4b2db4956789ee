// SPDX-License-Identifier: Apache-2.0
//
// Rows of a serving engine for `report --by request` (one row for each request, below its tenant) and `--by token`
// (prefill, decode and waste). Rows sum to the energy of all steps; idle_j is the energy between steps. Errors of rows
// are correlated, so `groups` contains the sums whose intervals the serving ledger knows: those of all steps and of
// tenants. Pure.
#pragma once

#include "attribution/ledger/ledger.h"
#include "model/serving_result.h"

namespace joulemap::attribution {

LedgerResult make_request_rows(const ServingResult& serving);
LedgerResult make_token_rows(const ServingResult& serving);

}  // namespace joulemap::attribution

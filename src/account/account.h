// SPDX-License-Identifier: Apache-2.0
//
// Computes the account of a run. Pure.
#pragma once

#include "base/result.h"
#include "model/carbon_account.h"
#include "model/report_result.h"

namespace joulemap::account {

// Fails if a time series does not cover the run, or the time of the run is unknown.
Result<CarbonAccount> compute_carbon_account(const ReportResult& report, const CarbonAccountAssumptions& assumptions);

}  // namespace joulemap::account

// SPDX-License-Identifier: Apache-2.0
//
// Computes the account of a run. Pure.
#pragma once

#include "base/result.h"
#include "model/account.h"
#include "model/report_result.h"

namespace joulemap::account {

// Fails if a time series does not cover the run, or the time of the run is unknown.
Result<Account> compute_account(const ReportResult& report, const AccountAssumptions& assumptions);

}  // namespace joulemap::account

// SPDX-License-Identifier: Apache-2.0
//
// Time series of the carbon intensity of a grid. Pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/carbon_account.h"
#include "model/report_result.h"

namespace joulemap::account {

// Reads CSV with the header "time,gco2_per_kwh". A time is in Unix seconds or ISO 8601 in UTC (2026-11-18T15:00:00Z).
// `name` identifies the file in error messages.
Result<std::vector<CarbonPoint>> read_carbon_series(std::string_view text, std::string_view name);

// Mean of the series over the run, weighted by the energy of the counted domains of this provenance without probing.
// The last point covers as much time as the one before it. Fails if the run is not covered: values are never
// extrapolated.
Result<double> mean_carbon_intensity(std::span<const CarbonPoint> series, const ReportResult& report,
                                     Provenance provenance);

}  // namespace joulemap::account

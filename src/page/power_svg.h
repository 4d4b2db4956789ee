// SPDX-License-Identifier: Apache-2.0
//
// Power over time of all domains as a picture for the static page. Pure; deterministic.
#pragma once

#include <string>

#include "model/report_result.h"

namespace joulemap::page {

std::string power_svg(const ReportResult& run);

}  // namespace joulemap::page

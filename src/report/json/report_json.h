// SPDX-License-Identifier: Apache-2.0
//
// `joulemap report --json`: schema joulemap.report/1, one line. Programs rely on it: keys may be added, never removed;
// what is not known is null, and a diagnostic says why.
#pragma once

#include <string>

#include "model/report_result.h"

namespace joulemap::report {

std::string report_json(const ReportResult& result);

}  // namespace joulemap::report

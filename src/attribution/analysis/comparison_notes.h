// SPDX-License-Identifier: Apache-2.0
//
// What a comparison cannot see, as diagnostics: those of its recordings, and its own. Pure.
#pragma once

#include <set>
#include <span>
#include <string>

#include "attribution/analysis/run_comparison.h"
#include "model/run_difference.h"

namespace joulemap::attribution {

void note_diagnostics(RunDifference& difference, std::span<const RunReports> a, std::span<const RunReports> b);
// Programs that wait for the host, which vary more than the prior says.
void note_waiting(RunDifference& difference, std::span<const RunReports> a, std::span<const RunReports> b);
// `domains`: that only some of the recordings have. `is_asked`: that whole runs are compared.
void note_limits(RunDifference& difference, const std::set<std::string>& domains, bool is_asked);

}  // namespace joulemap::attribution

// SPDX-License-Identifier: Apache-2.0
//
// Adds diagnostics to a comparison: those of its recordings, and its own limits. Pure.
#pragma once

#include <set>
#include <span>
#include <string>

#include "attribution/analysis/run_comparison.h"
#include "model/run_difference.h"

namespace joulemap::attribution {

void add_recording_diagnostics(RunDifference& difference, std::span<const RunReports> a, std::span<const RunReports> b);
// Adds what a comparison of estimates by one power model contains.
void add_estimate_diagnostic(RunDifference& difference);
// Adds that other processes used the machine much more during some of the estimated recordings.
void add_unequal_load_diagnostic(RunDifference& difference);
// Adds a diagnostic if GPUs wait for the host for much of the energy: such programs vary more between runs than the
// prior states. Not if each side has three recordings or more, which show that variation.
void add_host_waiting_diagnostic(RunDifference& difference, std::span<const RunReports> a,
                                 std::span<const RunReports> b);
// `domains`: in only some of the recordings. `is_whole_run_requested`: the user asked to compare whole runs.
void add_comparison_limit_diagnostics(RunDifference& difference, const std::set<std::string>& domains,
                                      bool is_whole_run_requested);

}  // namespace joulemap::attribution

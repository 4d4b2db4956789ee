// SPDX-License-Identifier: Apache-2.0
//
// Matches the work of two programs that do the same job, by what it computes instead of by what it is called.
//
// Work of equal device, phase, kind and shape is one group. Of the rest, shapes that have at least half of their sizes
// in common are matched one to one, the largest energies first: a batch or a sequence is longer. Only the 1000 shapes
// of a device, phase and kind with the most energy are compared in this way. What is then left of a device, phase and
// kind on both sides is one group: operations whose shapes are unknown or too different. Work that only one side has
// keeps its shape, and so does the waiting of idle devices its cause.
//
// The uncertainty of a group: errors of equal kernels are fully correlated, those of different kernels independent.
// Both overestimate it, because the sum over all kernels is measured. Pure; joules.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attribution/analysis/operator_work.h"
#include "model/report_result.h"
#include "model/run_difference.h"

namespace joulemap::attribution {

inline constexpr std::string_view kWaitingGroupKind = "waiting";  // of a GPU
inline constexpr std::string_view kIdleGroupKind = "idle";        // of a CPU
inline constexpr std::string_view kUnassignedGroupKind = "not assigned";

// Work of one recording and the idle energy of its devices.
struct RecordedWork {
  std::vector<OperatorWork> work;
  std::vector<IdleEntry> idle;
};

// A row of the comparison for each group and recording, with the path of the group.
struct MatchedWork {
  std::vector<std::vector<ReportRow>> a;  // by recording
  std::vector<std::vector<ReportRow>> b;
  // Device and path of each group, with what ran in it.
  std::vector<std::pair<std::pair<std::string, std::vector<std::string>>, OperatorGroup>> groups;
};

MatchedWork match_operator_work(std::span<const RecordedWork> a, std::span<const RecordedWork> b);

// Adds to each entry of the comparison its group, and one entry for the energy of the total that no entry has, so that
// the entries add up to the total.
void add_operator_groups(RunDifference& difference, const MatchedWork& matched);

}  // namespace joulemap::attribution

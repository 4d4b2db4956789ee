// SPDX-License-Identifier: Apache-2.0
//
// BundleStatements: everything that a bundle states about its recordings. `joulemap bundle` stores them; `joulemap
// verify` computes them again from the recordings and compares.
#pragma once

#include <string>
#include <vector>

#include "attribution/analysis/report_builder.h"
#include "base/result.h"
#include "bundle/bundle_file.h"
#include "bundle/bundle_member_copies.h"
#include "model/bundle_result.h"
#include "model/diagnostics.h"

namespace joulemap::bundle {

struct BundleStatements {
  std::string layer_report;   // JSON, one line with its newline
  std::string domain_report;  // JSON
  std::string environment;    // JSON
  MeasurementVerdict verdict;
  Diagnostics diagnostics;
};

// `query.level` is not used. `notes`: diagnostics of the kernel library, which become part of the reports. Statements
// and errors contain the names of members instead of the paths of copies.
Result<BundleStatements> compute_statements(const BundleMemberCopies& copies, attribution::ReportQuery query,
                                            const Diagnostics& notes);

// Numbers are equal if they differ by at most this fraction: the last digits depend on the processor.
inline constexpr double kStatementRelativeTolerance = 1e-9;
inline constexpr std::size_t kMaxStatementDifferences = 100;

// Differences between what the bundle states and `computed`, at most kMaxStatementDifferences.
std::vector<StatementDifference> compare_statements(const OpenedBundle& bundle, const BundleStatements& computed);

}  // namespace joulemap::bundle

// SPDX-License-Identifier: Apache-2.0
//
// Results of `joulemap bundle` and `joulemap verify`. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/diagnostics.h"

namespace joulemap {

// Why a recording cannot be quoted as it is. Codes only grow, as those of diagnostics do:
//   throttled       power limit or heat lowered the clocks
//   co_tenant       other processes used a measured device
//   gaps            data were lost or damaged: an energy or a count is too low
//   estimates_only  no counted domain was measured
//   no_energy       the energy is unknown
//   clock_jump      wall clock and monotonic clock moved against each other: the time of day is unreliable
//   too_short       the run has too few updates of a sensor
struct VerdictReason {
  std::string code;
  std::string sentence;
};

struct MeasurementVerdict {
  std::vector<VerdictReason> reasons;  // in the order of the list above; empty: valid
  bool is_valid() const { return reasons.empty(); }
};

struct MemberDigest {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sha256;  // 64 hexadecimal digits
};

struct BundleResult {
  std::string file;
  std::uint64_t file_bytes = 0;
  std::string manifest_sha256;  // identifies the bundle
  MeasurementVerdict verdict;
  std::vector<MemberDigest> members;
  Diagnostics diagnostics;
};

// A value that a bundle states, and that its recordings do not give.
struct StatementDifference {
  std::string member;          // "reports/layer.json"
  std::string path;            // "rows[3].energy_j"
  std::string stated_value;    // empty: there is no such value
  std::string computed_value;  // empty: there is no such value
};

struct VerificationResult {
  std::string file;
  std::string manifest_sha256;
  std::string bundle_version;        // of the joulemap that made the bundle
  std::string verifier_version;      // of this one
  std::vector<std::string> damage;   // members that do not match the manifest, one sentence each
  std::optional<std::string> error;  // why the numbers could not be computed again; none: they were
  std::vector<StatementDifference> differences;
  MeasurementVerdict stated_verdict;
  std::optional<MeasurementVerdict> computed_verdict;  // none if the recordings are damaged or could not be read
  std::uint64_t recordings = 0;

  bool is_valid() const { return damage.empty() && !error && differences.empty(); }
};

}  // namespace joulemap

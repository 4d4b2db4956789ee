// SPDX-License-Identifier: Apache-2.0
//
// JSON representation of a MeasurementVerdict, shared by the manifest of a bundle and the reports on it.
#pragma once

#include "formats/json_writer.h"
#include "model/bundle_result.h"

namespace joulemap {

// Writes the member "verdict": {"valid", "reasons": [{"code", "sentence"}]}.
void write_verdict(formats::JsonWriter& json, const MeasurementVerdict& verdict);

// Writes the member "members": [{"name", "bytes", "sha256"}].
void write_member_digests(formats::JsonWriter& json, const std::vector<MemberDigest>& members);

}  // namespace joulemap

// SPDX-License-Identifier: Apache-2.0
#include "model_json/verdict_json.h"

namespace joulemap {

void write_verdict(formats::JsonWriter& json, const MeasurementVerdict& verdict) {
  json.key("verdict").begin_object().member("valid", verdict.is_valid()).key("reasons").begin_array();
  for (const VerdictReason& reason : verdict.reasons)
    json.begin_object().member("code", reason.code).member("sentence", reason.sentence).end_object();
  json.end_array().end_object();
}

void write_member_digests(formats::JsonWriter& json, const std::vector<MemberDigest>& members) {
  json.key("members").begin_array();
  for (const MemberDigest& member : members) {
    json.begin_object()
        .member("name", member.name)
        .member("bytes", member.bytes)
        .member("sha256", member.sha256)
        .end_object();
  }
  json.end_array();
}

}  // namespace joulemap

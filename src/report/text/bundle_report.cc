// SPDX-License-Identifier: Apache-2.0
#include "report/text/bundle_report.h"

#include <fmt/format.h>

#include "base/printable_text.h"
#include "formats/json_writer.h"
#include "model_json/diagnostics_json.h"
#include "model_json/verdict_json.h"
#include "report/text/diagnostics_text.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kMaxDifferencesShown = 20;

// Texts of a bundle are of unknown origin: each is passed through printable(), so that it stays in its line.

std::string verdict_text(const MeasurementVerdict& verdict, std::string_view label = "verdict") {
  if (verdict.is_valid()) return fmt::format("{}: valid\n", label);
  std::string codes;
  std::string sentences;
  for (const VerdictReason& reason : verdict.reasons) {
    const std::string code = printable(reason.code);
    codes += (codes.empty() ? "" : ", ") + code;
    sentences += fmt::format("  {}: {}\n", code, printable(reason.sentence));
  }
  return fmt::format("{}: {}\n{}", label, codes, sentences);
}

// The verdict on the recordings; without one, the bundle's own, which nothing confirms.
std::string checked_verdict_text(const VerificationResult& result) {
  return result.computed_verdict ? verdict_text(*result.computed_verdict)
                                 : verdict_text(result.stated_verdict, "verdict (stated, not verified)");
}

std::string stated_value_text(const std::string& value) { return value.empty() ? "nothing" : printable(value); }

std::string statement_differences_text(const VerificationResult& result) {
  std::string out;
  std::size_t shown_difference_count = 0;
  for (const StatementDifference& difference : result.differences) {
    if (++shown_difference_count > kMaxDifferencesShown) break;
    out += fmt::format("differs: {}{}{}: states {}, the recording gives {}\n", printable(difference.member),
                       difference.path.empty() ? "" : " ", printable(difference.path),
                       stated_value_text(difference.stated_value), stated_value_text(difference.computed_value));
  }
  if (result.differences.size() > kMaxDifferencesShown)
    out += fmt::format("  and {} more\n", result.differences.size() - kMaxDifferencesShown);
  if (!out.empty() && result.bundle_version != result.verifier_version)
    out += fmt::format("note: joulemap {} made the bundle; this is {}, which may attribute energy differently\n",
                       printable(result.bundle_version), result.verifier_version);
  return out;
}

}  // namespace

std::string bundle_text(const BundleResult& result) {
  const std::string file = printable(result.file);
  return fmt::format("{}: {} bytes, {} members\nsha256 of its manifest: {}\n", file, result.file_bytes,
                     result.members.size(), result.manifest_sha256) +
         verdict_text(result.verdict) + fmt::format("check it: joulemap verify {}\n", file) +
         diagnostics_text(result.diagnostics);
}

std::string bundle_json(const BundleResult& result) {
  formats::JsonWriter json;
  json.begin_object()
      .member("schema", "joulemap.bundle/1")
      .member("file", result.file)
      .member("file_bytes", result.file_bytes)
      .member("manifest_sha256", result.manifest_sha256);
  write_verdict(json, result.verdict);
  write_member_digests(json, result.members);
  write_diagnostics(json, result.diagnostics);
  json.end_object();
  return std::move(json).text();
}

std::string verification_text(const VerificationResult& result) {
  const std::string file = printable(result.file);
  std::string out;
  for (const std::string& damage : result.damage) out += fmt::format("damaged: {}\n", printable(damage));
  if (result.error) out += fmt::format("not computed again: {}\n", printable(*result.error));
  out += statement_differences_text(result);
  if (result.is_valid()) {
    out += fmt::format("{}: verified: every hash matches, and {} recording{} the numbers of its reports\n", file,
                       result.recordings, result.recordings == 1 ? " gives" : "s give");
  } else {
    out += fmt::format("{}: not verified\n", file);
  }
  return out + fmt::format("sha256 of its manifest: {}\n", result.manifest_sha256) + checked_verdict_text(result);
}

std::string verification_json(const VerificationResult& result) {
  formats::JsonWriter json;
  json.begin_object()
      .member("schema", "joulemap.verification/1")
      .member("file", result.file)
      .member("verified", result.is_valid())
      .member("manifest_sha256", result.manifest_sha256)
      .member("bundle_version", result.bundle_version)
      .member("own_version", result.verifier_version)
      .member("recordings", result.recordings)
      .key("damage")
      .begin_array();
  for (const std::string& damage : result.damage) json.value(damage);
  json.end_array().member("error", result.error).key("differences").begin_array();
  for (const StatementDifference& difference : result.differences) {
    json.begin_object()
        .member("member", difference.member)
        .member("path", difference.path)
        .text_or_null("stated", difference.stated_value)
        .text_or_null("computed", difference.computed_value)
        .end_object();
  }
  json.end_array();
  if (result.computed_verdict) {
    write_verdict(json, *result.computed_verdict);
  } else {
    json.key("verdict").null();
  }
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report

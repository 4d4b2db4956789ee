// SPDX-License-Identifier: Apache-2.0
//
// The file of `joulemap bundle`: a tar archive (formats/tar.h) of recordings and of what their report states. Members:
//
//   manifest.json           schema joulemap.manifest/1: version, options, verdict; size and SHA-256 of all others
//   manifest.sha256         SHA-256 of manifest.json, as `sha256sum` prints it; it identifies the bundle
//   recordings/NAME         the recordings, byte for byte
//   library.joule           the kernel library, if --library named one
//   environment.json        schema joulemap.environment/1
//   reports/layer.json      schema joulemap.report/1
//   reports/domain.json
//
// The same recordings, options and version give the same bytes. Pure; members borrow the bytes of the archive.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/tar.h"
#include "model/bundle_result.h"

namespace joulemap::bundle {

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kManifestDigestName = "manifest.sha256";
inline constexpr std::string_view kRecordingFolder = "recordings/";
inline constexpr std::string_view kLibraryName = "library.joule";
inline constexpr std::string_view kEnvironmentName = "environment.json";
inline constexpr std::string_view kLayerReportName = "reports/layer.json";
inline constexpr std::string_view kDomainReportName = "reports/domain.json";

// Options of the report, as on the command line.
struct BundleOptions {
  std::string mode;
  std::string time;  // empty: the whole run
  std::vector<std::string> excluded_domains;
  std::string library;  // empty: priors of the recording; "none"; or kLibraryName
};

struct Manifest {
  std::string version;  // of the joulemap that made the bundle
  BundleOptions options;
  Verdict verdict;
  std::vector<MemberDigest> members;  // all but the manifest and its digest, in the order of the archive
};

// Names of members for recordings of these paths: distinct, and allowed in an archive.
std::vector<std::string> recording_names(std::span<const std::string> paths);

struct WrittenBundle {
  std::string archive;
  std::string manifest_sha256;
  Manifest manifest;
};
// `members`: all but the manifest and its digest. `manifest.members` is filled in.
WrittenBundle write_bundle(Manifest manifest, std::span<const formats::TarMember> members);

struct OpenedBundle {
  Manifest manifest;
  std::string manifest_sha256;
  std::vector<formats::TarMember> members;  // all but the manifest and its digest
  // Members whose content does not match the manifest, one sentence each: empty if the bundle is undamaged.
  std::vector<std::string> damage;

  std::optional<std::string_view> content(std::string_view name) const;
  std::vector<formats::TarMember> recordings() const;
};
// Fails if the archive or its manifest cannot be read.
Result<OpenedBundle> open_bundle(std::string_view archive);

}  // namespace joulemap::bundle

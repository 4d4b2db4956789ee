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
// A bundle has no other members, and the manifest has one form: open_bundle() reports anything else as damage, because
// `verify` vouches for the whole file. The same recordings, options and version give the same bytes. Pure; members
// borrow the bytes of the archive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/tar.h"
#include "model/bundle_result.h"

namespace joulemap::bundle {

inline constexpr std::string_view kManifestMemberName = "manifest.json";
inline constexpr std::string_view kManifestDigestMemberName = "manifest.sha256";
inline constexpr std::string_view kRecordingMemberFolder = "recordings/";
inline constexpr std::string_view kLibraryMemberName = "library.joule";
inline constexpr std::string_view kEnvironmentMemberName = "environment.json";
inline constexpr std::string_view kLayerReportMemberName = "reports/layer.json";
inline constexpr std::string_view kDomainReportMemberName = "reports/domain.json";

// Options of the report, as on the command line.
struct BundleOptions {
  std::string attribution_mode;
  std::string time_range;  // empty: the whole run
  std::vector<std::string> excluded_domains;
  std::string library_name;  // empty: priors of the recording; "none"; or kLibraryMemberName
};

struct Manifest {
  std::string joulemap_version;  // of the joulemap that made the bundle
  BundleOptions options;
  MeasurementVerdict verdict;
  std::vector<MemberDigest> members;  // all but the manifest and its digest, in the order of the archive
};

// Names of members for recordings of these paths: distinct, and allowed in an archive.
std::vector<std::string> unique_recording_names(std::span<const std::string> paths);

// Limit of the reader of `verify` (cli/model_file.h).
inline constexpr std::uint64_t kMaxBundleBytes = std::uint64_t{2} << 30U;

// Fails if a bundle of `inputs` recordings and libraries with these bytes could not be opened again.
Status check_bundle_size(std::size_t inputs, std::uint64_t bytes);

struct WrittenBundle {
  std::string archive_bytes;
  std::string manifest_sha256;
  Manifest manifest;
};
// `members`: all but the manifest and its digest. `manifest.members` is filled in.
WrittenBundle write_bundle(Manifest manifest, std::span<const formats::TarMember> members);

struct OpenedBundle {
  Manifest manifest;
  std::string manifest_sha256;
  std::vector<formats::TarMember> members;  // all but the manifest and its digest
  // Members that do not match the manifest or do not belong in a bundle, one sentence each: empty if undamaged.
  std::vector<std::string> damage_descriptions;

  std::optional<std::string_view> member_content(std::string_view name) const;
  std::vector<formats::TarMember> recording_members() const;
};
// Fails if the archive or its manifest cannot be read.
Result<OpenedBundle> open_bundle(std::string_view archive);

}  // namespace joulemap::bundle

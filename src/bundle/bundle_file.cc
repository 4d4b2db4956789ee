// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "base/text.h"
#include "formats/document.h"
#include "formats/json_writer.h"
#include "formats/sha256.h"
#include "model_json/verdict_json.h"
#include "recording/chunk.h"

namespace joulemap::bundle {
namespace {

constexpr std::string_view kManifestSchema = "joulemap.manifest/1";
constexpr std::string_view kNotABundleMessage =
    "this is not a bundle: it does not begin with manifest.json and manifest.sha256";
constexpr std::size_t kMaxRecordingName_bytes = 60;
constexpr std::array<std::string_view, 3> kComputedMemberNames = {kEnvironmentMemberName, kLayerReportMemberName,
                                                                  kDomainReportMemberName};
// Manifest, its digest, and the computed members.
constexpr std::size_t kNonRecordingMemberCount = 2 + kComputedMemberNames.size();

Error damaged_bundle_error(std::string message) {
  return {ErrorCode::malformed, std::move(message), "copy the file again, or make it again with joulemap bundle"};
}

std::string format_digest_line(std::string_view digest) { return fmt::format("{}  {}\n", digest, kManifestMemberName); }

std::string manifest_json(const Manifest& manifest) {
  formats::JsonWriter json;
  json.begin_object().member("schema", kManifestSchema).member("joulemap", manifest.joulemap_version);
  json.key("options")
      .begin_object()
      .member("mode", manifest.options.attribution_mode)
      .text_or_null("time", manifest.options.time_range);
  json.key("exclude").begin_array();
  for (const std::string& domain : manifest.options.excluded_domains) json.value(domain);
  json.end_array().text_or_null("library", manifest.options.library_name).end_object();
  write_verdict(json, manifest.verdict);
  write_member_digests(json, manifest.members);
  json.end_object();
  return std::move(json).text() + "\n";
}

BundleOptions parse_bundle_options(const formats::DocumentValue& table) {
  BundleOptions options{table.text_or_empty("mode"), table.text_or_empty("time"), {}, table.text_or_empty("library")};
  const formats::DocumentValue* const excluded_domains = table.find("exclude");
  if (excluded_domains == nullptr || excluded_domains->array() == nullptr) return options;
  for (const formats::DocumentValue& domain : *excluded_domains->array())
    options.excluded_domains.push_back(domain.text().value_or(""));
  return options;
}

MeasurementVerdict parse_stated_verdict(const formats::DocumentValue& value) {
  MeasurementVerdict verdict;
  const formats::DocumentValue* const reasons = value.find("reasons");
  if (reasons == nullptr || reasons->array() == nullptr) return verdict;
  for (const formats::DocumentValue& reason : *reasons->array())
    verdict.reasons.push_back({reason.text_or_empty("code"), reason.text_or_empty("sentence")});
  return verdict;
}

Result<Manifest> parse_manifest(std::string_view text) {
  const Result<formats::DocumentValue> document = formats::read_json(text, kManifestMemberName);
  if (!document) return document.error();
  if (const std::string schema = document->text_or_empty("schema"); schema != kManifestSchema) {
    return Error{ErrorCode::malformed,
                 fmt::format("manifest.json has the schema {}, not {}", joulemap::quoted(schema), kManifestSchema),
                 "use a newer joulemap"};
  }
  Manifest manifest;
  manifest.joulemap_version = document->text_or_empty("joulemap");
  const formats::DocumentValue* const options = document->find("options");
  const formats::DocumentValue* const members = document->find("members");
  if (options == nullptr || members == nullptr || members->array() == nullptr)
    return damaged_bundle_error("manifest.json has no options or members");
  manifest.options = parse_bundle_options(*options);
  if (const formats::DocumentValue* const verdict = document->find("verdict"))
    manifest.verdict = parse_stated_verdict(*verdict);
  if (members->array()->size() > formats::kMaxTarMembers)
    return damaged_bundle_error(fmt::format("manifest.json lists more than {} members", formats::kMaxTarMembers));
  std::set<std::string> names;
  for (const formats::DocumentValue& member : *members->array()) {
    const std::int64_t bytes = member.integer("bytes").value_or(-1);
    if (bytes < 0) return damaged_bundle_error("a member of manifest.json has no size");
    if (const std::string name = member.text_or_empty("name"); !names.insert(name).second)
      return damaged_bundle_error(fmt::format("manifest.json lists {} twice", joulemap::quoted(name, 100)));
    manifest.members.push_back(
        {member.text_or_empty("name"), static_cast<std::uint64_t>(bytes), member.text_or_empty("sha256")});
  }
  return manifest;
}

// Whether a bundle with these options has such a member.
bool is_bundle_member(std::string_view name, const BundleOptions& options) {
  if (name == kLibraryMemberName) return options.library_name == kLibraryMemberName;
  return name.starts_with(kRecordingMemberFolder) || std::ranges::count(kComputedMemberNames, name) > 0;
}

// Compares the members of the archive with those of its manifest.
std::vector<std::string> find_damaged_members(const OpenedBundle& bundle, std::string_view manifest_text) {
  std::vector<std::string> damage;
  if (manifest_json(bundle.manifest) != manifest_text)
    damage.emplace_back("manifest.json has content or a form that joulemap bundle does not write");
  std::set<std::string_view> listed_names;
  for (const MemberDigest& stated_digest : bundle.manifest.members) {
    listed_names.insert(stated_digest.name);
    const std::optional<std::string_view> content = bundle.member_content(stated_digest.name);
    if (!content) {
      damage.push_back(fmt::format("{} is missing", joulemap::quoted(stated_digest.name, 100)));
    } else if (content->size() != stated_digest.bytes) {
      damage.push_back(
          fmt::format("{} has {} bytes instead of {}", stated_digest.name, content->size(), stated_digest.bytes));
    } else if (formats::sha256_hex(*content) != stated_digest.sha256) {
      damage.push_back(fmt::format("{} has another SHA-256 than its manifest states", stated_digest.name));
    }
  }
  for (const formats::TarMember& member : bundle.members) {
    if (!listed_names.contains(member.name)) {
      damage.push_back(fmt::format("{} is not in the manifest", member.name));
    } else if (!is_bundle_member(member.name, bundle.manifest.options)) {
      damage.push_back(fmt::format("{} does not belong in a bundle: nothing checks its content", member.name));
    }
  }
  return damage;
}

}  // namespace

std::vector<std::string> unique_recording_names(std::span<const std::string> paths) {
  std::vector<std::string> names;
  std::set<std::string> used_names;
  std::map<std::string, int> next_name_suffixes;  // of each base: parts of one run often have the same name
  for (const std::string& path : paths) {
    std::string file_base_name = std::filesystem::path(path).filename().string();
    std::ranges::replace_if(
        file_base_name, [](char c) { return c == '/' || !formats::is_tar_name(std::string("x") + c); }, '_');
    if (file_base_name.size() > kMaxRecordingName_bytes)
      file_base_name = file_base_name.substr(file_base_name.size() - kMaxRecordingName_bytes);
    std::string name = std::string(kRecordingMemberFolder) + file_base_name;
    int& next_name_suffix = next_name_suffixes.try_emplace(file_base_name, 2).first->second;
    while (!used_names.insert(name).second)
      name = fmt::format("{}{}-{}", kRecordingMemberFolder, next_name_suffix++, file_base_name);
    names.push_back(std::move(name));
  }
  return names;
}

Status check_bundle_size(std::size_t inputs, std::uint64_t bytes) {
  const std::string remedy = "bundle fewer recordings, or a shorter run";
  if (inputs + kNonRecordingMemberCount > formats::kMaxTarMembers) {
    return Error{ErrorCode::usage,
                 fmt::format("{} files are more than the {} that a bundle can contain", inputs,
                             formats::kMaxTarMembers - kNonRecordingMemberCount),
                 remedy};
  }
  if (bytes > kMaxBundleBytes) {
    return Error{
        ErrorCode::usage,
        fmt::format("{} MB are more than the {} MB that a bundle can contain", bytes >> 20U, kMaxBundleBytes >> 20U),
        remedy};
  }
  return Done{};
}

WrittenBundle write_bundle(Manifest manifest, std::span<const formats::TarMember> members) {
  manifest.members.clear();
  for (const formats::TarMember& member : members)
    manifest.members.push_back({member.name, member.content.size(), formats::sha256_hex(member.content)});
  const std::string text = manifest_json(manifest);
  WrittenBundle bundle{
      .archive_bytes = {}, .manifest_sha256 = formats::sha256_hex(text), .manifest = std::move(manifest)};
  const std::string digest = format_digest_line(bundle.manifest_sha256);
  std::vector<formats::TarMember> all_members = {{std::string(kManifestMemberName), text},
                                                 {std::string(kManifestDigestMemberName), digest}};
  all_members.insert(all_members.end(), members.begin(), members.end());
  bundle.archive_bytes = formats::write_tar(all_members);
  return bundle;
}

std::optional<std::string_view> OpenedBundle::member_content(std::string_view name) const {
  const auto matching_member = std::ranges::find(members, name, &formats::TarMember::name);
  return matching_member == members.end() ? std::nullopt : std::optional(matching_member->content);
}

std::vector<formats::TarMember> OpenedBundle::recording_members() const {
  std::vector<formats::TarMember> recordings;
  for (const formats::TarMember& member : members) {
    if (member.name.starts_with(kRecordingMemberFolder)) recordings.push_back(member);
  }
  return recordings;
}

Result<OpenedBundle> open_bundle(std::string_view archive) {
  if (archive.starts_with(recording::kChunkMagic)) {
    return Error{ErrorCode::malformed, "this is a recording, not a bundle",
                 "joulemap bundle FILE -o run.bundle makes a bundle of it"};
  }
  if (!archive.starts_with(kManifestMemberName)) return damaged_bundle_error(std::string(kNotABundleMessage));
  Result<std::vector<formats::TarMember>> members = formats::read_tar(archive);
  if (!members) return std::move(members).error();
  if (members->size() < 2 || members->at(0).name != kManifestMemberName ||
      members->at(1).name != kManifestDigestMemberName)
    return damaged_bundle_error(std::string(kNotABundleMessage));
  const std::string_view text = members->at(0).content;
  OpenedBundle bundle;
  bundle.manifest_sha256 = formats::sha256_hex(text);
  if (members->at(1).content != format_digest_line(bundle.manifest_sha256))
    return damaged_bundle_error("manifest.json has another SHA-256 than manifest.sha256 states");
  Result<Manifest> manifest = parse_manifest(text);
  if (!manifest) return std::move(manifest).error();
  bundle.manifest = std::move(*manifest);
  bundle.members.assign(members->begin() + 2, members->end());
  bundle.damage_descriptions = find_damaged_members(bundle, text);
  return bundle;
}

}  // namespace joulemap::bundle

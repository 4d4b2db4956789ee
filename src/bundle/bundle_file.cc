// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "formats/document.h"
#include "formats/json_writer.h"
#include "formats/sha256.h"
#include "model_json/verdict_json.h"

namespace joulemap::bundle {
namespace {

constexpr std::string_view kSchema = "joulemap.manifest/1";
constexpr std::size_t kMaxNameBytes = 60;

Error damaged(std::string message) {
  return {ErrorCode::malformed, std::move(message), "copy the file again, or make it again with joulemap bundle"};
}

std::string digest_line(std::string_view digest) { return fmt::format("{}  {}\n", digest, kManifestName); }

std::string manifest_json(const Manifest& manifest) {
  formats::JsonWriter json;
  json.begin_object().member("schema", kSchema).member("joulemap", manifest.version);
  json.key("options").begin_object().member("mode", manifest.options.mode).text_or_null("time", manifest.options.time);
  json.key("exclude").begin_array();
  for (const std::string& domain : manifest.options.excluded_domains) json.value(domain);
  json.end_array().text_or_null("library", manifest.options.library).end_object();
  write_verdict(json, manifest.verdict);
  write_member_digests(json, manifest.members);
  json.end_object();
  return std::move(json).text() + "\n";
}

BundleOptions options_of(const formats::DocumentValue& table) {
  BundleOptions options{table.text_or_empty("mode"), table.text_or_empty("time"), {}, table.text_or_empty("library")};
  const formats::DocumentValue* const excluded = table.find("exclude");
  if (excluded == nullptr || excluded->array() == nullptr) return options;
  for (const formats::DocumentValue& domain : *excluded->array())
    options.excluded_domains.push_back(domain.text().value_or(""));
  return options;
}

Verdict verdict_of(const formats::DocumentValue& value) {
  Verdict verdict;
  const formats::DocumentValue* const reasons = value.find("reasons");
  if (reasons == nullptr || reasons->array() == nullptr) return verdict;
  for (const formats::DocumentValue& reason : *reasons->array())
    verdict.reasons.push_back({reason.text_or_empty("code"), reason.text_or_empty("sentence")});
  return verdict;
}

Result<Manifest> parse_manifest(std::string_view text) {
  const Result<formats::DocumentValue> document = formats::read_json(text, kManifestName);
  if (!document) return document.error();
  if (const std::string schema = document->text_or_empty("schema"); schema != kSchema) {
    return Error{ErrorCode::malformed,
                 fmt::format("manifest.json has the schema {}, not {}", joulemap::quoted(schema), kSchema),
                 "use a newer joulemap"};
  }
  Manifest manifest;
  manifest.version = document->text_or_empty("joulemap");
  const formats::DocumentValue* const options = document->find("options");
  const formats::DocumentValue* const members = document->find("members");
  if (options == nullptr || members == nullptr || members->array() == nullptr)
    return damaged("manifest.json has no options or members");
  manifest.options = options_of(*options);
  if (const formats::DocumentValue* const verdict = document->find("verdict")) manifest.verdict = verdict_of(*verdict);
  for (const formats::DocumentValue& member : *members->array()) {
    const std::int64_t bytes = member.integer("bytes").value_or(-1);
    if (bytes < 0) return damaged("a member of manifest.json has no size");
    manifest.members.push_back(
        {member.text_or_empty("name"), static_cast<std::uint64_t>(bytes), member.text_or_empty("sha256")});
  }
  return manifest;
}

// Compares the members of the archive with those of its manifest.
std::vector<std::string> find_damage(const OpenedBundle& bundle) {
  std::vector<std::string> damage;
  std::set<std::string_view> listed;
  for (const MemberDigest& stated : bundle.manifest.members) {
    listed.insert(stated.name);
    const std::optional<std::string_view> content = bundle.content(stated.name);
    if (!content) {
      damage.push_back(fmt::format("{} is missing", joulemap::quoted(stated.name, 100)));
    } else if (content->size() != stated.bytes) {
      damage.push_back(fmt::format("{} has {} bytes instead of {}", stated.name, content->size(), stated.bytes));
    } else if (formats::sha256_hex(*content) != stated.sha256) {
      damage.push_back(fmt::format("{} has another SHA-256 than its manifest states", stated.name));
    }
  }
  for (const formats::TarMember& member : bundle.members) {
    if (!listed.contains(member.name)) damage.push_back(fmt::format("{} is not in the manifest", member.name));
  }
  return damage;
}

}  // namespace

std::vector<std::string> recording_names(std::span<const std::string> paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    std::string base = std::filesystem::path(path).filename().string();
    std::ranges::replace_if(
        base, [](char c) { return c == '/' || !formats::is_tar_name(std::string("x") + c); }, '_');
    if (base.size() > kMaxNameBytes) base = base.substr(base.size() - kMaxNameBytes);
    std::string name = std::string(kRecordingFolder) + base;
    for (int number = 2; std::ranges::count(names, name) > 0; ++number)
      name = fmt::format("{}{}-{}", kRecordingFolder, number, base);
    names.push_back(std::move(name));
  }
  return names;
}

WrittenBundle write_bundle(Manifest manifest, std::span<const formats::TarMember> members) {
  manifest.members.clear();
  for (const formats::TarMember& member : members)
    manifest.members.push_back({member.name, member.content.size(), formats::sha256_hex(member.content)});
  const std::string text = manifest_json(manifest);
  WrittenBundle bundle{.archive = {}, .manifest_sha256 = formats::sha256_hex(text), .manifest = std::move(manifest)};
  const std::string digest = digest_line(bundle.manifest_sha256);
  std::vector<formats::TarMember> all = {{std::string(kManifestName), text},
                                         {std::string(kManifestDigestName), digest}};
  all.insert(all.end(), members.begin(), members.end());
  bundle.archive = formats::write_tar(all);
  return bundle;
}

std::optional<std::string_view> OpenedBundle::content(std::string_view name) const {
  const auto found = std::ranges::find(members, name, &formats::TarMember::name);
  return found == members.end() ? std::nullopt : std::optional(found->content);
}

std::vector<formats::TarMember> OpenedBundle::recordings() const {
  std::vector<formats::TarMember> found;
  for (const formats::TarMember& member : members) {
    if (member.name.starts_with(kRecordingFolder)) found.push_back(member);
  }
  return found;
}

Result<OpenedBundle> open_bundle(std::string_view archive) {
  Result<std::vector<formats::TarMember>> members = formats::read_tar(archive);
  if (!members) return std::move(members).error();
  if (members->size() < 2 || members->at(0).name != kManifestName || members->at(1).name != kManifestDigestName)
    return damaged("this is not a bundle: it does not begin with manifest.json and manifest.sha256");
  const std::string_view text = members->at(0).content;
  OpenedBundle bundle;
  bundle.manifest_sha256 = formats::sha256_hex(text);
  if (members->at(1).content != digest_line(bundle.manifest_sha256))
    return damaged("manifest.json has another SHA-256 than manifest.sha256 states");
  Result<Manifest> manifest = parse_manifest(text);
  if (!manifest) return std::move(manifest).error();
  bundle.manifest = std::move(*manifest);
  bundle.members.assign(members->begin() + 2, members->end());
  bundle.damage = find_damage(bundle);
  return bundle;
}

}  // namespace joulemap::bundle

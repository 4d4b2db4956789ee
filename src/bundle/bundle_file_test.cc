// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_file.h"

#include <gtest/gtest.h>

#include <random>

#include "formats/sha256.h"

namespace joulemap::bundle {
namespace {

Manifest make_manifest() {
  Manifest manifest;
  manifest.joulemap_version = "0.1.0";
  manifest.options = {"regress", "1,2", {"cpu", "ram"}, "none"};
  manifest.verdict.reasons = {{"throttled", "the power limit lowered \"clocks\""}};
  return manifest;
}

std::vector<formats::TarMember> make_members() {
  return {{"recordings/run.joule", "not really a recording"}, {"reports/layer.json", "{}\n"}};
}

TEST(BundleFile, OpensWhatItWrote) {
  const WrittenBundle written = write_bundle(make_manifest(), make_members());
  const Result<OpenedBundle> opened = open_bundle(written.archive_bytes);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->damage_descriptions, std::vector<std::string>());
  EXPECT_EQ(opened->manifest_sha256, written.manifest_sha256);
  EXPECT_EQ(opened->manifest.joulemap_version, "0.1.0");
  EXPECT_EQ(opened->manifest.options.time_range, "1,2");
  EXPECT_EQ(opened->manifest.options.excluded_domains, (std::vector<std::string>{"cpu", "ram"}));
  ASSERT_EQ(opened->manifest.verdict.reasons.size(), 1U);
  EXPECT_EQ(opened->manifest.verdict.reasons[0].sentence, "the power limit lowered \"clocks\"");
  EXPECT_EQ(opened->member_content("reports/layer.json"), "{}\n");
  EXPECT_EQ(opened->member_content("other"), std::nullopt);
  ASSERT_EQ(opened->recording_members().size(), 1U);
}

TEST(BundleFile, BytesDependOnItsMembersOnly) {
  EXPECT_EQ(write_bundle(make_manifest(), make_members()).archive_bytes,
            write_bundle(make_manifest(), make_members()).archive_bytes);
}

TEST(BundleFile, FindsEveryChangedByte) {
  const std::string archive = write_bundle(make_manifest(), make_members()).archive_bytes;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (std::size_t offset = 0; offset < archive.size(); ++offset) {
    std::string changed_archive = archive;
    changed_archive[offset] =
        static_cast<char>(static_cast<unsigned char>(changed_archive[offset]) ^ (1 + random() % 255));
    const Result<OpenedBundle> opened = open_bundle(changed_archive);
    EXPECT_TRUE(!opened || !opened->damage_descriptions.empty()) << "byte " << offset;
  }
}

TEST(BundleFile, NamesMembersThatAreMissingOrNotListed) {
  const WrittenBundle written = write_bundle(make_manifest(), make_members());
  const Result<std::vector<formats::TarMember>> members = formats::read_tar(written.archive_bytes);
  ASSERT_TRUE(members);
  std::vector<formats::TarMember> changed_members = *members;
  changed_members.back() = {"extra.json", "{}"};
  const std::string archive = formats::write_tar(changed_members);
  const Result<OpenedBundle> opened = open_bundle(archive);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->damage_descriptions,
            (std::vector<std::string>{"'reports/layer.json' is missing", "extra.json is not in the manifest"}));
}

TEST(BundleFile, RefusesArchivesThatAreNoBundles) {
  EXPECT_FALSE(open_bundle(""));
  EXPECT_FALSE(open_bundle(formats::write_tar({})));
  EXPECT_FALSE(open_bundle(formats::write_tar(make_members())));
  for (const std::string text :
       {"", "{", "[]", "{\"schema\": \"joulemap.manifest/2\"}", "{\"schema\": \"joulemap.manifest/1\"}"}) {
    const std::string digest = formats::sha256_hex(text) + "  manifest.json\n";
    const std::vector<formats::TarMember> members = {{"manifest.json", text}, {"manifest.sha256", digest}};
    EXPECT_FALSE(open_bundle(formats::write_tar(members))) << text;
  }
}

std::string manifest_text(const std::string& archive) {
  const Result<std::vector<formats::TarMember>> members = formats::read_tar(archive);
  return members ? std::string(members->at(0).content) : "";
}

// A bundle of make_members() with this manifest and a correct digest.
std::string archive_with_manifest(const std::string& text) {
  const std::string digest = formats::sha256_hex(text) + "  manifest.json\n";
  std::vector<formats::TarMember> members = {{"manifest.json", text}, {"manifest.sha256", digest}};
  for (const formats::TarMember& member : make_members()) members.push_back(member);
  return formats::write_tar(members);
}

std::string replace_once(std::string text, std::string_view old_text, std::string_view replacement) {
  const std::size_t position = text.find(old_text);
  EXPECT_NE(position, std::string::npos) << old_text;
  return text.replace(position, old_text.size(), replacement);
}

TEST(BundleFile, ReportsManifestsThatStateMoreThanIsChecked) {
  const std::string text = manifest_text(write_bundle(make_manifest(), make_members()).archive_bytes);
  const std::string unchanged_archive = archive_with_manifest(text);
  ASSERT_TRUE(open_bundle(unchanged_archive));
  EXPECT_EQ(open_bundle(unchanged_archive)->damage_descriptions, std::vector<std::string>());
  for (const std::string& changed_manifest :
       {replace_once(text, R"("valid":false)", R"("valid":true)"),
        replace_once(text, R"("options":)", R"("energy_j":1.0,"options":)"),
        replace_once(text, R"("mode":"regress")", R"("mode":"regress","mode":"measured")"),
        replace_once(text, R"("options")", R"( "options")"), text + " "}) {
    const std::string archive = archive_with_manifest(changed_manifest);
    const Result<OpenedBundle> opened = open_bundle(archive);
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_EQ(opened->damage_descriptions.size(), 1U) << changed_manifest;
    EXPECT_NE(opened->damage_descriptions[0].find("manifest.json has content"), std::string::npos);
  }
}

TEST(BundleFile, ReportsUnexpectedMembers) {
  for (const std::string name : {"reports/summary.json", "library.joule", "recording/x", "environment.json.txt"}) {
    std::vector<formats::TarMember> members = make_members();
    members.push_back({name, "{\"measured_j\": 1.0}"});
    const std::string archive = write_bundle(make_manifest(), members).archive_bytes;
    const Result<OpenedBundle> opened = open_bundle(archive);
    ASSERT_TRUE(opened);
    ASSERT_EQ(opened->damage_descriptions.size(), 1U) << name;
    EXPECT_NE(opened->damage_descriptions[0].find(name + " does not belong"), std::string::npos);
  }
  Manifest manifest = make_manifest();
  manifest.options.library_name = kLibraryMemberName;
  std::vector<formats::TarMember> members = make_members();
  members.push_back({std::string(kLibraryMemberName), "a library"});
  const std::string archive = write_bundle(manifest, members).archive_bytes;
  EXPECT_EQ(open_bundle(archive)->damage_descriptions, std::vector<std::string>());
}

// Each listed member is hashed: repeating one must not multiply the time.
TEST(BundleFile, RefusesManifestsThatListAMemberTwiceOrTooMany) {
  const std::string text = manifest_text(write_bundle(make_manifest(), make_members()).archive_bytes);
  const auto with_first = [&text](const std::string& entries) {
    return open_bundle(archive_with_manifest(replace_once(text, "\"members\":[", "\"members\":[" + entries)));
  };
  const auto entry = [](const std::string& name) { return R"({"name":")" + name + R"(","bytes":1,"sha256":"0"},)"; };
  const Result<OpenedBundle> bundle_with_duplicate = with_first(entry("recordings/run.joule"));
  ASSERT_FALSE(bundle_with_duplicate);
  EXPECT_NE(bundle_with_duplicate.error().message.find("lists 'recordings/run.joule' twice"), std::string::npos);
  std::string many_entries;
  for (std::size_t i = 0; i < formats::kMaxTarMembers; ++i) many_entries += entry("recordings/" + std::to_string(i));
  EXPECT_FALSE(with_first(many_entries));
}

TEST(BundleFile, ChecksThatItCanBeOpenedAgain) {
  EXPECT_TRUE(check_bundle_size(995, kMaxBundleBytes));
  EXPECT_FALSE(check_bundle_size(996, 1));
  EXPECT_FALSE(check_bundle_size(1, kMaxBundleBytes + 1));
  const std::vector<std::string> paths(995, "run.joule");
  std::vector<formats::TarMember> members;
  for (const std::string& name : unique_recording_names(paths)) members.push_back({name, "content"});
  for (const std::string_view name : {kEnvironmentMemberName, kLayerReportMemberName, kDomainReportMemberName})
    members.push_back({std::string(name), "{}"});
  const std::string archive = write_bundle(make_manifest(), members).archive_bytes;
  EXPECT_TRUE(open_bundle(archive));
}

TEST(BundleFile, RecordingsGetDistinctPlainNames) {
  const std::vector<std::string> paths = {"/a/run.joule", "/b/run.joule", "/c/meine läufe.joule",
                                          "/d/" + std::string(200, 'x') + ".joule"};
  const std::vector<std::string> names = unique_recording_names(paths);
  EXPECT_EQ(names[0], "recordings/run.joule");
  EXPECT_EQ(names[1], "recordings/2-run.joule");
  EXPECT_EQ(names[2], "recordings/meine_l__ufe.joule");
  for (const std::string& name : names) EXPECT_TRUE(formats::is_tar_name(name)) << name;
}

}  // namespace
}  // namespace joulemap::bundle

// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_file.h"

#include <gtest/gtest.h>

#include <random>

#include "formats/sha256.h"

namespace joulemap::bundle {
namespace {

Manifest some_manifest() {
  Manifest manifest;
  manifest.version = "0.1.0";
  manifest.options = {"regress", "1,2", {"cpu", "ram"}, "none"};
  manifest.verdict.reasons = {{"throttled", "the power limit lowered \"clocks\""}};
  return manifest;
}

std::vector<formats::TarMember> some_members() {
  return {{"recordings/run.joule", "not really a recording"}, {"reports/layer.json", "{}\n"}};
}

TEST(BundleFile, OpensWhatItWrote) {
  const WrittenBundle written = write_bundle(some_manifest(), some_members());
  const Result<OpenedBundle> opened = open_bundle(written.archive);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->damage, std::vector<std::string>());
  EXPECT_EQ(opened->manifest_sha256, written.manifest_sha256);
  EXPECT_EQ(opened->manifest.version, "0.1.0");
  EXPECT_EQ(opened->manifest.options.time, "1,2");
  EXPECT_EQ(opened->manifest.options.excluded_domains, (std::vector<std::string>{"cpu", "ram"}));
  ASSERT_EQ(opened->manifest.verdict.reasons.size(), 1U);
  EXPECT_EQ(opened->manifest.verdict.reasons[0].sentence, "the power limit lowered \"clocks\"");
  EXPECT_EQ(opened->content("reports/layer.json"), "{}\n");
  EXPECT_EQ(opened->content("other"), std::nullopt);
  ASSERT_EQ(opened->recordings().size(), 1U);
}

TEST(BundleFile, DependsOnItsMembersOnly) {
  EXPECT_EQ(write_bundle(some_manifest(), some_members()).archive,
            write_bundle(some_manifest(), some_members()).archive);
}

TEST(BundleFile, FindsEveryChangedByte) {
  const std::string archive = write_bundle(some_manifest(), some_members()).archive;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (std::size_t at = 0; at < archive.size(); ++at) {
    std::string changed = archive;
    changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ (1 + random() % 255));
    const Result<OpenedBundle> opened = open_bundle(changed);
    EXPECT_TRUE(!opened || !opened->damage.empty()) << "byte " << at;
  }
}

TEST(BundleFile, NamesMembersThatAreMissingOrNotListed) {
  const WrittenBundle written = write_bundle(some_manifest(), some_members());
  const Result<std::vector<formats::TarMember>> members = formats::read_tar(written.archive);
  ASSERT_TRUE(members);
  std::vector<formats::TarMember> changed = *members;
  changed.back() = {"extra.json", "{}"};
  const std::string archive = formats::write_tar(changed);
  const Result<OpenedBundle> opened = open_bundle(archive);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->damage,
            (std::vector<std::string>{"'reports/layer.json' is missing", "extra.json is not in the manifest"}));
}

TEST(BundleFile, RefusesArchivesThatAreNoBundles) {
  EXPECT_FALSE(open_bundle(""));
  EXPECT_FALSE(open_bundle(formats::write_tar({})));
  EXPECT_FALSE(open_bundle(formats::write_tar(some_members())));
  for (const std::string text :
       {"", "{", "[]", "{\"schema\": \"joulemap.manifest/2\"}", "{\"schema\": \"joulemap.manifest/1\"}"}) {
    const std::string digest = formats::sha256_hex(text) + "  manifest.json\n";
    const std::vector<formats::TarMember> members = {{"manifest.json", text}, {"manifest.sha256", digest}};
    EXPECT_FALSE(open_bundle(formats::write_tar(members))) << text;
  }
}

TEST(BundleFile, RecordingsGetDistinctPlainNames) {
  const std::vector<std::string> paths = {"/a/run.joule", "/b/run.joule", "/c/meine läufe.joule",
                                          "/d/" + std::string(200, 'x') + ".joule"};
  const std::vector<std::string> names = recording_names(paths);
  EXPECT_EQ(names[0], "recordings/run.joule");
  EXPECT_EQ(names[1], "recordings/2-run.joule");
  EXPECT_EQ(names[2], "recordings/meine_l__ufe.joule");
  for (const std::string& name : names) EXPECT_TRUE(formats::is_tar_name(name)) << name;
}

}  // namespace
}  // namespace joulemap::bundle

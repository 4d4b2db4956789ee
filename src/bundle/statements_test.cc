// SPDX-License-Identifier: Apache-2.0
#include "bundle/statements.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "formats/document.h"
#include "recording/recording_writer.h"
#include "support/recordings.h"
#include "support/temporary_directory.h"

namespace joulemap::bundle {
namespace {

// The bytes of what the recorder of machine `number` writes: 50 W for four seconds.
std::string write_machine_recording(int number) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/part.joule";
  RecordingSource source = make_recording_source(number);
  source.host = fmt::format("node{}", number);
  source.boot_id = fmt::format("boot-{}", number);
  Result<recording::RecordingWriter> writer = recording::RecordingWriter::create(path, source, 0);
  EXPECT_TRUE(writer);
  const std::vector<Channel> channels = make_recorded_channels(1);
  writer->set_channels(channels);
  constexpr std::int64_t kTicks = 80;
  writer->add(EnvironmentFact{"kernel", "6.1"});
  writer->add(EnvironmentFact{"load_at_start", fmt::format("0.{}", number)});
  writer->add(Mark{make_recorded_sample(0, 0).reading.before_ns, MarkKind::command_begin, 0, 0, {}});
  writer->add(Mark{make_recorded_sample(0, kTicks).reading.before_ns, MarkKind::command_end, 0, 0, {}});
  for (std::int64_t tick = 0; tick <= kTicks; ++tick) writer->add(make_recorded_sample(0, tick));
  EXPECT_TRUE(writer->finish({}));
  return file_bytes(path);
}

// A bundle of `machines` recordings, and the bytes that its members refer to.
class BundleOfMachines {
 public:
  explicit BundleOfMachines(int machines) {
    for (int i = 0; i < machines; ++i) contents_.push_back(write_machine_recording(i));
    for (std::size_t i = 0; i < contents_.size(); ++i)
      members_.push_back({fmt::format("recordings/part{}.joule", i), contents_[i]});
  }
  const std::vector<formats::TarMember>& members() const { return members_; }
  static BundleStatements compute_expected_statements(std::span<const formats::TarMember> members) {
    const Result<BundleMemberCopies> copies = BundleMemberCopies::create(members);
    EXPECT_TRUE(copies) << copies.error().message;
    Result<BundleStatements> computed = compute_statements(*copies, {}, {});
    EXPECT_TRUE(computed) << computed.error().message;
    return computed ? std::move(*computed) : BundleStatements();
  }
  std::string make_archive() const {
    const BundleStatements expected_statements = compute_expected_statements(members_);
    std::vector<formats::TarMember> all_members = members_;
    all_members.push_back({std::string(kEnvironmentMemberName), expected_statements.environment});
    all_members.push_back({std::string(kLayerReportMemberName), expected_statements.layer_report});
    all_members.push_back({std::string(kDomainReportMemberName), expected_statements.domain_report});
    Manifest manifest;
    manifest.options.attribution_mode = "regress";
    manifest.verdict = expected_statements.verdict;
    return write_bundle(std::move(manifest), all_members).archive_bytes;
  }

 private:
  std::vector<std::string> contents_;
  std::vector<formats::TarMember> members_;
};

// "10.joule" sorts before "2.joule", but the parts of a bundle keep their order.
TEST(BundleStatements, AreTheSameWhenABundleOfTwelveMachinesIsRead) {
  const std::string archive = BundleOfMachines(12).make_archive();
  const Result<OpenedBundle> opened = open_bundle(archive);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->damage_descriptions, std::vector<std::string>());
  const BundleStatements recomputed_statements = BundleOfMachines::compute_expected_statements(opened->members);
  const auto document = formats::read_json(recomputed_statements.domain_report, "report");
  ASSERT_TRUE(document);
  const formats::DocumentValue::Array& hosts = *document->find("hosts")->array();
  ASSERT_EQ(hosts.size(), 12U);
  for (std::size_t i = 0; i < hosts.size(); ++i) EXPECT_EQ(hosts[i].text(), fmt::format("node{}", i));
  for (const StatementDifference& difference : compare_statements(*opened, recomputed_statements))
    ADD_FAILURE() << difference.path << ": " << difference.stated_value << ", " << difference.computed_value;
}

TEST(BundleStatements, TheEnvironmentHasEachKeyOnceAndListsWhatDiffersBetweenMachines) {
  const BundleOfMachines bundle(2);
  const std::string environment = BundleOfMachines::compute_expected_statements(bundle.members()).environment;
  const auto document = formats::read_json(environment, "environment");
  ASSERT_TRUE(document);
  const formats::DocumentValue::Table& environment_facts = *document->find("facts")->table();
  ASSERT_EQ(environment_facts.size(), 1U);
  EXPECT_EQ(environment_facts[0].key, "kernel");
  const formats::DocumentValue::Array& differing_facts = *document->find("differing_facts")->array();
  ASSERT_EQ(differing_facts.size(), 2U);
  EXPECT_EQ(differing_facts[1].text_or_empty("host"), "node1");
  EXPECT_EQ(differing_facts[1].text_or_empty("name"), "load_at_start");
  EXPECT_EQ(differing_facts[1].text_or_empty("value"), "0.1");
}

TEST(BundleMemberCopies, ReplaceTheirPathsAndNoOtherText) {
  const std::vector<formats::TarMember> members = {
      {"recordings/a", "1"}, {"environment.json", "2"}, {"recordings/gpu0", "3"}, {"library.joule", "4"}};
  std::string folder;
  {
    const Result<BundleMemberCopies> copies = BundleMemberCopies::create(members);
    ASSERT_TRUE(copies) << copies.error().message;
    const std::vector<std::string> paths = copies->recording_paths();
    ASSERT_EQ(paths.size(), 2U);
    EXPECT_TRUE(std::ranges::is_sorted(paths));
    EXPECT_EQ(file_bytes(paths[1]), "3");
    EXPECT_EQ(file_bytes(copies->library_path()), "4");
    EXPECT_EQ(copies->replace_paths_with_names(
                  fmt::format("gpu0: a gap in {0} and {0}, {1}, {2}", paths[0], paths[1], copies->library_path())),
              "gpu0: a gap in recordings/a and recordings/a, recordings/gpu0, library.joule");
    folder = std::filesystem::path(paths[0]).parent_path();
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(BundleMemberCopies, ErrorsNameMembersInsteadOfCopies) {
  const std::vector<formats::TarMember> members = {{"recordings/a", "not a recording"}};
  const Result<BundleMemberCopies> copies = BundleMemberCopies::create(members);
  ASSERT_TRUE(copies);
  const Result<BundleStatements> computed = compute_statements(*copies, {}, {});
  ASSERT_FALSE(computed);
  EXPECT_NE(computed.error().message.find("recordings/a"), std::string::npos) << computed.error().message;
  EXPECT_EQ(computed.error().message.find("joulemap-bundle-"), std::string::npos) << computed.error().message;
}

}  // namespace
}  // namespace joulemap::bundle

// SPDX-License-Identifier: Apache-2.0
#include "recording/anonymizer.h"

#include <gtest/gtest.h>

namespace joulemap::recording {
namespace {

RecordingSource make_source(const std::string& host, const std::string& boot, std::int64_t pid) {
  RecordingSource source;
  source.recording_id = "0123456789abcdef0123456789abcdef";
  source.host = host;
  source.boot_id = boot;
  source.pid = pid;
  source.command = {"/home/bobby/venv/bin/python",
                    "../mine/a.py",
                    "--out=/data/x,/data/y",
                    "--user",
                    "bobby",
                    "--key=X",
                    "https://intern.example/a",
                    "s3://bucket",
                    "a/b",
                    "/dev/null"};
  return source;
}

class AnonymizedNames : public testing::Test {
 protected:
  void SetUp() override {
    names.collect_names(first);
    names.collect_names(second);
  }
  const RecordingSource first = make_source("node1.cluster.example", "boot-1", 4711);
  const RecordingSource second = make_source("node2", "boot-2", 4711);
  Anonymizer names;
};

TEST_F(AnonymizedNames, NamesOfHostsBootsAndProcessesAreDistinctAndConsistent) {
  const RecordingSource first_anonymized_source = names.anonymize_source(first);
  const RecordingSource second_anonymized_source = names.anonymize_source(second);
  EXPECT_NE(first_anonymized_source.host, second_anonymized_source.host);
  EXPECT_NE(first_anonymized_source.boot_id, second_anonymized_source.boot_id);
  EXPECT_NE(first_anonymized_source.boot_id, first.boot_id);
  EXPECT_EQ(first_anonymized_source.pid, 1);
  EXPECT_EQ(second_anonymized_source.pid, 2);
  EXPECT_EQ(names.anonymize_source(first).boot_id, first_anonymized_source.boot_id);
  EXPECT_EQ(names.anonymize_source(first).pid, first_anonymized_source.pid);
}

TEST_F(AnonymizedNames, NamesOfAnImportStayUnchanged) {
  RecordingSource imported_source = first;
  imported_source.boot_id = imported_source.recording_id;
  names.collect_names(imported_source);
  EXPECT_TRUE(is_imported(names.anonymize_source(imported_source)));
  EXPECT_EQ(names.anonymize_source(imported_source).host, "host-1");
}

TEST_F(AnonymizedNames, NamesOfFoldersAndUsersAreRemovedFromTheCommand) {
  const std::vector<std::string> anonymized_command = {"python",    "a.py",        "--out=x,y", "--user", "user",
                                                       "--key=***", "https://***", "s3://***",  "b",      "/dev/null"};
  EXPECT_EQ(names.anonymize_source(first).command, anonymized_command);
}

TEST_F(AnonymizedNames, InTextsAreReplacedAsWholeWords) {
  const std::string host = names.anonymize_source(first).host;
  EXPECT_EQ(names.anonymize_text("on node1.cluster.example: /home/bobby/run.joule.d, node12"),
            "on " + host + ": run.joule.d, node12");
  EXPECT_EQ(names.anonymize_text("node1 bobby_tables bobby"), host + " bobby_tables user");
  EXPECT_EQ(names.anonymize_text("/sys/class/powercap/intel-rapl:0/energy_uj"),
            "/sys/class/powercap/intel-rapl:0/energy_uj");
  EXPECT_EQ(names.anonymize_name("/layer1/conv/Conv"), "/layer1/conv/Conv");
}

TEST_F(AnonymizedNames, OfGpusPreserveTheirFormat) {
  const std::string uuid = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f";
  const std::string anonymized_name = names.anonymize_name("of " + uuid + "!");
  EXPECT_EQ(anonymized_name.size(), uuid.size() + 4);
  EXPECT_EQ(anonymized_name.find("0a0b0c0d0e0f"), std::string::npos);
  EXPECT_TRUE(anonymized_name.starts_with("of GPU-"));
  EXPECT_EQ(names.anonymize_name("GPU-none"), "GPU-none");
}

}  // namespace
}  // namespace joulemap::recording

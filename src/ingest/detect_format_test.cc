// SPDX-License-Identifier: Apache-2.0
#include "ingest/detect_format.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_directory.h"

namespace joulemap::ingest {
namespace {

class DetectFormat : public testing::Test {
 protected:
  std::string file(const std::string& name, std::string_view content) {
    const std::string path = directory_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  std::string detect_test_format(const std::string& name, std::string_view content) {
    const Result<std::string> format = detect_format(file(name, content));
    return format ? *format : "none";
  }

  TemporaryDirectory directory_;
};

TEST_F(DetectFormat, KnowsEachFormatByItsContent) {
  EXPECT_EQ(detect_test_format("a.json", R"({"schemaVersion": 1, "traceEvents": []})"), "kineto");
  EXPECT_EQ(detect_test_format("b.json", R"({"traceEvents": [{"cat": "cpu_op", "name": "aten::add"}]})"), "kineto");
  EXPECT_EQ(detect_test_format("c.json", "\n[\n{\"cat\" : \"Session\",\"pid\" :7}"), "onnxruntime");
  EXPECT_EQ(
      detect_test_format("d.json", R"({"traceEvents": [{"args": {"name": "/job:localhost/device:CPU:0 Compute"}}]})"),
      "tensorflow");
  EXPECT_EQ(detect_test_format("e.sqlite", std::string_view("SQLite format 3\0...", 19)), "nsys");
  EXPECT_EQ(detect_test_format("f.csv", "time_unix_ns,domain,kind,value\n1,gpu0,power_w,3\n"), "csv");
  EXPECT_EQ(detect_test_format("g.csv", "timestamp, power.draw [W]\n2024/01/01 00:00:00.000, 61.2 W\n"), "nvidia-smi");
  EXPECT_EQ(detect_test_format("h.xplane.pb", "\x0a\x10\x12\x09/host:CPU"), "xplane");
  EXPECT_EQ(detect_test_format("run_metadata.pb", "\x0a\x10\x0a\x0e/job:localhost/"), "tensorflow");
}

TEST_F(DetectFormat, FindsXplaneFilesBelowALogFolder) {
  std::filesystem::create_directories(directory_.path() + "/logs/plugins/profile/1");
  file("logs/plugins/profile/1/host.xplane.pb", "x");
  EXPECT_EQ(*detect_format(directory_.path() + "/logs"), "xplane");
}

TEST_F(DetectFormat, RefusesAnUnknownFormat) {
  EXPECT_EQ(detect_test_format("empty", ""), "none");
  EXPECT_EQ(detect_test_format("text", "hello\n"), "none");
  EXPECT_EQ(detect_test_format("other.json", R"({"a": 1})"), "none");
  EXPECT_FALSE(detect_format(directory_.path() + "/missing"));
}

}  // namespace
}  // namespace joulemap::ingest

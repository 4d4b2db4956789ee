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
  std::string format_of(const std::string& name, std::string_view content) {
    const Result<std::string> format = detect_format(file(name, content));
    return format ? *format : "none";
  }

  TemporaryDirectory directory_;
};

TEST_F(DetectFormat, KnowsEachFormatByItsContent) {
  EXPECT_EQ(format_of("a.json", R"({"schemaVersion": 1, "traceEvents": []})"), "kineto");
  EXPECT_EQ(format_of("b.json", R"({"traceEvents": [{"cat": "cpu_op", "name": "aten::add"}]})"), "kineto");
  EXPECT_EQ(format_of("c.json", "\n[\n{\"cat\" : \"Session\",\"pid\" :7}"), "onnxruntime");
  EXPECT_EQ(format_of("d.json", R"({"traceEvents": [{"args": {"name": "/job:localhost/device:CPU:0 Compute"}}]})"),
            "tensorflow");
  EXPECT_EQ(format_of("e.sqlite", std::string_view("SQLite format 3\0...", 19)), "nsys");
  EXPECT_EQ(format_of("f.csv", "time_unix_ns,domain,kind,value\n1,gpu0,power_w,3\n"), "csv");
  EXPECT_EQ(format_of("g.csv", "timestamp, power.draw [W]\n2024/01/01 00:00:00.000, 61.2 W\n"), "nvidia-smi");
  EXPECT_EQ(format_of("h.xplane.pb", "\x0a\x10\x12\x09/host:CPU"), "xplane");
  EXPECT_EQ(format_of("run_metadata.pb", "\x0a\x10\x0a\x0e/job:localhost/"), "tensorflow");
}

TEST_F(DetectFormat, FindsXplaneFilesBelowALogFolder) {
  std::filesystem::create_directories(directory_.path() + "/logs/plugins/profile/1");
  file("logs/plugins/profile/1/host.xplane.pb", "x");
  EXPECT_EQ(*detect_format(directory_.path() + "/logs"), "xplane");
}

TEST_F(DetectFormat, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(format_of("empty", ""), "none");
  EXPECT_EQ(format_of("text", "hello\n"), "none");
  EXPECT_EQ(format_of("other.json", R"({"a": 1})"), "none");
  EXPECT_FALSE(detect_format(directory_.path() + "/missing"));
}

}  // namespace
}  // namespace joulemap::ingest

// SPDX-License-Identifier: Apache-2.0
#include "ingest/trace_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/temporary_directory.h"

namespace joulemap::ingest {
namespace {

TEST(TraceFile, ReadsALargeFileLikeASmallOne) {
  const TemporaryDirectory folder;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1000}, (std::size_t{4} << 20) + 13}) {
    std::string text(size, ' ');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + i / 4096);
    const std::string path = folder.path() + "/file";
    std::ofstream(path, std::ios::binary) << text;
    const Result<TraceBytes> bytes = read_trace_file(path);
    ASSERT_TRUE(bytes);
    EXPECT_TRUE(bytes->view() == text) << size;
  }
  EXPECT_FALSE(read_trace_file(folder.path() + "/none"));
}

}  // namespace
}  // namespace joulemap::ingest

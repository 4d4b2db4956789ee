// SPDX-License-Identifier: Apache-2.0
#include "support/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace joulemap {

void expect_golden(std::string_view file_name, std::string_view text) {
  const std::string path = std::string(JOULEMAP_GOLDENS) + "/" + std::string(file_name);
  if (std::getenv("JOULEMAP_UPDATE_GOLDENS") != nullptr) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file.good()) << path << " is missing: run make update-goldens";
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(expected.str(), text) << "differs from " << path << "; if that is right, run make update-goldens";
}

}  // namespace joulemap

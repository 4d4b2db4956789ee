// SPDX-License-Identifier: Apache-2.0
#include "support/temporary_directory.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/check.h"

namespace joulemap {

TemporaryDirectory::TemporaryDirectory() {
  path_ = (std::filesystem::temp_directory_path() / "joulemap-test-XXXXXX").string();
  JOULEMAP_CHECK(::mkdtemp(path_.data()) != nullptr, "cannot make a temporary directory");
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored_error;  // a leftover folder in /tmp must not fail a test that passed
  std::filesystem::remove_all(path_, ignored_error);
}

std::string TemporaryDirectory::write(std::string_view relative_path, std::string_view content) const {
  const std::filesystem::path file = std::filesystem::path(path_) / relative_path;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
  return file.string();
}

}  // namespace joulemap

// SPDX-License-Identifier: Apache-2.0
//
// TemporaryDirectory: a fresh folder for one test, with helpers to fill it, removed with the test.
#pragma once

#include <string>
#include <string_view>

namespace joulemap {

class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

  // Writes (or overwrites in place) a file below the folder, making folders on the way; returns its whole
  // path.
  std::string write(std::string_view relative_path, std::string_view content) const;

 private:
  std::string path_;
};

}  // namespace joulemap

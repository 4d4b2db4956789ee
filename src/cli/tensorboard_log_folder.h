// SPDX-License-Identifier: Apache-2.0
//
// TensorboardLogFolder: a folder of TensorBoard event files: a new one, or the user's own, to which it adds a file without
// changing others. Main thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace joulemap::cli {

class TensorboardLogFolder {
 public:
  // Creates the folder if missing, so that a wrong path fails before the work starts.
  static Result<TensorboardLogFolder> open(const std::string& path);

  // The folder contains event files of others.
  bool is_shared() const { return is_shared_; }

  // Writes the file under an unused name; returns its path.
  Result<std::string> add_file(std::string_view host, std::string_view content) const;

 private:
  TensorboardLogFolder(std::string path, bool is_shared) : path_(std::move(path)), is_shared_(is_shared) {}
  std::string path_;
  bool is_shared_;
};

}  // namespace joulemap::cli
